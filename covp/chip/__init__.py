"""What is known of a chip: cores, platform files, energy and area."""
