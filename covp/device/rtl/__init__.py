"""Real cores as devices: their RTL, from packages, simulated by Verilator."""
