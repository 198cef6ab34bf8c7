"""The ear: OTLP in, spans recognised as hops, stitched per request."""
