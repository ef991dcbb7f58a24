"""Networks with a memory."""
