"""C in, ELF out, and what an ELF file says: symbols, lines, frames."""
