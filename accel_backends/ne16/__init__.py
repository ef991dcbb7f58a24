"""NE16, the neural engine of GAP9, and its cycles."""
