"""Many designs: sweeps, searches, and recorded runs retimed for other designs."""
