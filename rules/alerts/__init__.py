"""The kinds of alerts, a file for each: what is in trouble, in PromQL."""
