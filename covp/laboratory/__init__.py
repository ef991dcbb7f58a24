"""A laboratory for kernels: C functions of a device as Python callables, and what tests them.

The public names are those of `covp.testing`.
"""
