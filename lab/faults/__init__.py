"""Faults set at their cause, and controls that only look like some."""
