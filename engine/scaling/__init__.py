"""When replicas are needed and when one may go: what both faces of the signals share."""
