"""Where the requests of a budget, and the bad ones among them, are counted."""
