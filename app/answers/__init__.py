"""Answers to questions about the store: plain rows, for the command line and the API alike."""
