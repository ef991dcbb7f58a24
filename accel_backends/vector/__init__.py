"""An elementwise unit."""
