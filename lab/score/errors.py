"""What can be wrong with what is to be scored."""


class ScoreError(ValueError):
    """A file of truth or of answers that cannot be: says file, place, value, what is accepted."""
