"""How alerts and budgets stand, asked of a running service or of its store."""
