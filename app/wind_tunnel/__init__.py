"""`tailburn lab`: what is asked, run and told of the lab's fleets."""
