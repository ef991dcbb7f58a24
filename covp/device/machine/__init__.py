"""One emulated core on Unicorn."""
