"""promtool, the judge of rules that comes with Prometheus, run on files of tests."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailburn.app.errors import UserError

PROGRAM: Final = "promtool"
MISSING: Final = (
    f"{PROGRAM} is not on the PATH, and it runs the tests: it comes with Prometheus "
    "(https://prometheus.io/download, `apt-get install prometheus`, `brew install prometheus`, "
    "or `docker run --entrypoint promtool prom/prometheus`)"
)


@dataclass(frozen=True)
class Verdict:
    """What promtool said of one file."""

    passed: bool
    output: str


def find_promtool() -> str:
    """Its path. Raises UserError that says how to get it."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise UserError(MISSING)
    return found


def run_tests(promtool: str, file: Path) -> Verdict:
    """`promtool test rules FILE`, in the file's folder."""
    ended = subprocess.run(
        [promtool, "test", "rules", file.name],
        cwd=file.parent,
        capture_output=True,
        text=True,
        errors="replace",
    )
    return Verdict(ended.returncode == 0, (ended.stdout + ended.stderr).strip())
