"""Units as RTL: Verilog in the place of a unit's model in Python."""
