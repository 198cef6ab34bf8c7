"""What is wrong with an SLO although it is well written: one check is one file with one code."""
