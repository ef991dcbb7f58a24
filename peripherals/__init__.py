"""Python models of memory-mapped hardware, one file each. Imported as ``covp.peripherals``."""

if not __name__.startswith("covp."):
    raise ImportError("import covp.peripherals, not peripherals: a double import makes two classes")
