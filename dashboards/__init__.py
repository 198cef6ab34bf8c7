"""The face: Grafana dashboards and the built-in web pages."""
