"""Courses of events that rules are tested with, a file for each kind of alert or record."""
