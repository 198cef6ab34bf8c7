"""The lab against measured engines: what its figures are made from, and how far they hold."""
