"""Rows drawn in a terminal."""
