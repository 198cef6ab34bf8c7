"""Alertmanager: who is told of an alert, what is muted meanwhile, and how the message reads."""
