"""The brain: clocks, histograms, breakdowns, and the store they rest on."""
