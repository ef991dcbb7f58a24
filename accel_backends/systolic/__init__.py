"""A systolic array with a scratchpad that takes commands."""
