"""What runs on the target: start-up code, task runner, linker scripts, headers. Data, no Python."""
