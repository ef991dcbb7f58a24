"""A systolic array."""
