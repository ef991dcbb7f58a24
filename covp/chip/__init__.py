"""The description of a chip: cores, platform files, energy and area."""
