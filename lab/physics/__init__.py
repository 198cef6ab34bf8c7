"""Step times of an engine, of measured kernels: what a step costs, and what makes it cost more."""
