"""The files that `covp new` starts from."""
