"""An SLO proposed from what was healthy: `seen` gathers it, `proposal` sets thresholds a little
above it, `writing` makes the commented file.
"""
