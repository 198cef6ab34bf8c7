"""What can be wrong with a run."""


class RunError(ValueError):
    """A run that cannot be: the message says what was asked for and what is accepted."""
