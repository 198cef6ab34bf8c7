"""Two sets of rules compared by what they mean, not by how they are written."""
