"""Accelerators as the compiler sees them, one folder each. Imported as ``covp.accel_backends``."""

if not __name__.startswith("covp."):
    raise ImportError(
        "import covp.accel_backends, not accel_backends: a double import makes two classes"
    )
