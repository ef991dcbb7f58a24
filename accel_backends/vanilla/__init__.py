"""The float convolution of UMA's example."""
