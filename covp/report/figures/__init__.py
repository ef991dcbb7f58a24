"""One figure of a report in each file: what it shows as a Vega-Lite chart."""
