"""What ends a command with exit code 2 and a clear word instead of a traceback.

UserError           something the user can mend; one line for each thing wrong
└── SettingsError   settings that can't be used, all of them at once
"""


class UserError(Exception):
    """Each argument is one line for standard error."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(str(line) for line in self.args)


class SettingsError(UserError):
    """Bad settings: where each was given, what was given and what is wanted."""
