"""Code compiled by numba, and the memory it works in."""
