"""What each product emits for an attempt, one file a product (or a family of one make)."""
