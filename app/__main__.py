"""`tailburn` and `python -m tailburn.app`: runs the command line, turns errors into one line."""

import errno
import sys

from tailburn.app.cli import cli
from tailburn.app.errors import UserError

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; a UserError is told line by line and ends with 2."""
    try:
        cli()
    except UserError as error:
        for line in error.lines:
            print(f"tailburn: {line}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"tailburn: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
