"""A past time out of a Prometheus that scraped the service: counters, percentiles, gauges.

`asking` asks piece by piece, `counters` makes minutes of verdicts, `rollups` minutes of
percentiles, `gauges` what was in flight, `past` all of it for a backtest, and what is missing.
"""
