"""OTLP bytes in, columns of spans out."""
