"""From sums to outputs: requantization, its proofs, other changes of scale."""
