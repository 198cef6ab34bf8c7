"""One file per change of the schema, `sNNNN_<what>.py`, each naming the one before it."""
