"""Timing models of cores, traces of what they executed, and what these cost by any model."""
