"""Requantization of sums to outputs, its proofs, and other changes of scale."""
