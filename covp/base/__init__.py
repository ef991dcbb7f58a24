"""What every room uses: arguments, cache, plugins, YAML, what is closed."""
