"""Units with memories of their own that take commands: a layer becomes tiles."""
