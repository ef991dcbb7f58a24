"""One YAML file a platform."""
