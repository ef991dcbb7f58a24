"""Attention, whole and in tiles."""
