"""Operators that move values."""
