"""Recorded telemetry taken in again: from folders of bodies, archives of them, or OTLP files."""
