"""What hardware authors write against: registers, peripherals, jobs, bus, clock; no emulator."""
