"""What could keep this service from its work, each finding with what to do."""
