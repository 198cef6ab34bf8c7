"""What is recorded: rates of the budgets, what is left of them, percentiles, owners."""
