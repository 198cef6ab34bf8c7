"""What nobody wants to be told of for a time: maintenance, and what is known."""
