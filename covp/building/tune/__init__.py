"""Searching kernel schedules on the virtual device, and keeping what was found."""
