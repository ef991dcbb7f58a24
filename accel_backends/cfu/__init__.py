"""A tightly coupled unit with custom instructions."""
