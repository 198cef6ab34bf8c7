"""Who is told of incidents: the ways of the settings, what is known as they are told, the loop."""
