"""Reports: figures and tables of runs and sweeps in one HTML file."""
