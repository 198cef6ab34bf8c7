"""SLOs taken from other tools' files and given to them; what can't be carried over is listed."""
