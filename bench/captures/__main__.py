"""`python -m bench.captures [--only NAME] [--verbose] [--json] [--docs FILE] [CAPTURES]`.

Exit code 1 when a check fails.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.captures.catalogue import CASES
from bench.captures.docs import write
from bench.captures.judge import Verdict
from bench.captures.produce import judge_by_command
from bench.captures.shipped import unpack
from bench.captures.table import failures, json_line, terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Judges the captures and prints the table; 0 when every check holds."""
    options = _options(arguments)
    chosen = [case for case in CASES if options.only in (None, case.name)]
    with tempfile.TemporaryDirectory() as work:
        captures = options.captures or _captures(Path(work))
        verdicts = [judge_by_command(case, captures, Path(work)) for case in chosen]
    if options.json:
        print("\n".join(map(json_line, verdicts)))
    else:
        _show(verdicts, options.verbose)
    if options.docs:
        write(options.docs, verdicts)
    return 0 if all(verdict.passed for verdict in verdicts) else 1


def _captures(work: Path) -> Path:
    """The folder of whole captures where there is one, else the ones shipped with the tests."""
    whole = Path(os.environ.get("TAILBURN_SHARED", "../shared")) / "captures"
    return whole if whole.is_dir() else unpack(work / "captures")


def _show(verdicts: Sequence[Verdict], verbose: bool) -> None:
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(terminal(verdicts))
    if verbose:
        for verdict in verdicts:
            for line in failures(verdict):
                console.print(line, markup=False, highlight=False, soft_wrap=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.captures", description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("captures", nargs="?", type=Path, help="folder of captures")
    parser.add_argument("--only", choices=names, help="judge one capture")
    parser.add_argument("--verbose", action="store_true", help="print every failing check")
    parser.add_argument("--json", action="store_true", help="one object a capture")
    parser.add_argument("--docs", type=Path, help="write the table into this Markdown file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
