"""What `tailburn demo` says of each fault, beside what is true of it: run, not remembered.

    python -m bench.demo [SCENARIO ...] [--hours 1] [--severity strong]

Each fault is a demo of its own, on a store of its own. `pages` are the kinds of alert that page,
`owner` the hop that it says owns what the fastest burning budget suffers from, `true hop` and
`true verdict` what the lab wrote down. Exit code 1 where a demo ends without having said all.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

FAULTS: Final = (
    "none", "S1", "S2", "S10", "S14", "S16", "S18", "S21", "S23", "S24", "S25", "S29", "S31",
)  # fmt: skip
Row = dict[str, Any]
_COLUMNS: Final = ("fault", "budget", "burn", "pages", "owner", "true hop", "true verdict")
_ENDS_WITHIN_S: Final = 60.0


@dataclass(frozen=True)
class Shown:
    """What one demo said, row by row; without its last row, `said`, it ended early."""

    fault: str
    rows: Sequence[Row]

    @property
    def is_whole(self) -> bool:
        return any(row["type"] == "said" for row in self.rows)

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row["type"] == kind]

    @property
    def pages(self) -> list[str]:
        """Kinds of alert that page, each once."""
        found = (r["alertname"] for r in self.of("alert") if r["severity"] == "page")
        return sorted(set(found))

    def cells(self) -> list[str]:
        """A line of the table."""
        owner = next(iter(self.of("owner")), {})
        truth = next(iter(self.of("truth")), {})
        burn = owner.get("burn")
        return [
            self.fault,
            f"{owner.get('slo', '')} {owner.get('objective', '')}".strip(),
            "" if burn is None else f"{burn:.1f}",
            ", ".join(self.pages) or "-",
            owner.get("hop") or "-",
            truth.get("hop", "-"),
            truth.get("verdict", "-"),
        ]


def shown(fault: str, hours: float, severity: str) -> Shown:
    """Run one until it has said all, and end it."""
    ports = {f"TAILBURN_{name}_PORT": "0" for name in ("HTTP", "GRPC", "WEB")}
    with tempfile.TemporaryDirectory(prefix="tailburn-demo-") as folder:
        command = [
            sys.executable, "-m", "tailburn.app", "demo", "--no-recorded", "--json",
            "--fault", fault, "--hours", str(hours), "--severity", severity,
            "--store", str(Path(folder) / "demo"),
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | ports,
        ) as demo:  # fmt: skip
            rows = list(_rows(demo))
            demo.terminate()
            demo.wait(_ENDS_WITHIN_S)
    return Shown(fault, rows)


def _rows(demo: "subprocess.Popen[str]") -> Iterator[Row]:
    assert demo.stdout is not None, "it was opened with a pipe"
    for line in demo.stdout:
        row = json.loads(line)
        yield row
        if row["type"] == "said":
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, a line as each demo ends."""
    options = _options(arguments)
    drawn, failed = Table(*_COLUMNS, box=box.MARKDOWN), []
    for fault in options.faults or FAULTS:
        found = shown(fault, options.hours, options.severity)
        print(" | ".join(found.cells()), file=sys.stderr, flush=True)
        drawn.add_row(*found.cells())
        if not found.is_whole:
            failed.append(fault)
    Console(width=None if sys.stdout.isatty() else 160).print(drawn)
    for fault in failed:
        print(f"{fault}: the demo ended before it had said all", file=sys.stderr)
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("faults", nargs="*", metavar="SCENARIO", help="by id or name, or none")
    parser.add_argument("--hours", type=float, default=1.0, help="the past of each")
    parser.add_argument("--severity", default="strong", choices=("weak", "medium", "strong"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
