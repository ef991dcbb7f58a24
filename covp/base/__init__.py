"""Helpers for all packages: arguments, cache, plugins, YAML, closing of resources."""
