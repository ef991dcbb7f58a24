"""SOFTMAX and normalizations: operators over rows."""
