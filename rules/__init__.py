"""The law: an SLO becomes Prometheus recording and alerting rules."""
