"""The bench of truth: faults at known causes, and what systems say of them."""
