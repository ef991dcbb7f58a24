"""Classes for writers of hardware: registers, peripherals, jobs, bus, clock; no emulator."""
