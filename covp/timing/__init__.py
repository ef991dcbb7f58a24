"""Timing models of cores: how many cycles the instructions that ran would take."""
