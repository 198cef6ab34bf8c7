"""The whole service measured: from a sender's socket to rows that are durable."""
