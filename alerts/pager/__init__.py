"""What a person is told, and the ways it is sent: each a channel of its own."""
