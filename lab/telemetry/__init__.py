"""What a fleet tells of itself, as it goes over the wire."""
