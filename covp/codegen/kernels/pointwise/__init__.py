"""Operators of each element."""
