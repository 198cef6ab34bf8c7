"""Prometheus' `histogram_quantile` on the buckets that `/metrics` exposes, many at once."""
