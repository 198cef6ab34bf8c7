"""The switch: settings, command line, the service put together."""
