"""Recognising hops: rules in data (`hops.yaml`), applied once per distinct kind of span."""
