"""Pools, reductions and other operators over windows and axes."""
