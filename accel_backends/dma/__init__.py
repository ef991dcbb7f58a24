"""A gathering copy unit."""
