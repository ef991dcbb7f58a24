"""What `covp new` starts from."""
