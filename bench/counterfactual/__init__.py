"""What is said would have become of bad requests, beside the same run without the fault."""
