"""Energy and area as data: coefficients of chips and technologies, each with its source.

Nothing here is measured by covp, and what is computed from it is an estimate.
"""
