"""What ends the making of a configuration."""


class ConfigError(Exception):
    """Each argument is one line: where, what was given, what is wanted."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(str(line) for line in self.args)
