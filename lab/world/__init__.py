"""The fleet in motion: discrete events over flat arrays."""
