"""Divisions whose time shows how a core divides: few bits or many, of operands and quotient."""

DIVISIONS = {
    "div": (1000, 7),
    "div_zero": (1000, 0),
    "div_negative": (-1000, -7),
    "div_small": (5, 1000),
    "div_one": (0x7FFFFFFF, 1),
    "div_big": (0x7FFFFFFF, 0x40000000),
    "div_middle": (0x12345678, 0x1234),
    "div_nothing": (0, 3),
}
"""Name of the program to dividend and divisor."""
