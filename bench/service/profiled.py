"""The service with a profile of each thread that works on spans, in CPU time of the thread.

    python -m bench.service.profiled serve --store DIR

Writes what it found to the file named by BENCH_PROFILE when it ends.
"""

import cProfile
import marshal
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import thread as pool
from functools import wraps
from pathlib import Path
from typing import Any, Final

from tailburn.app.cli import cli
from tailburn.collector.intake import Intake
from tailburn.collector.keeper import Keeper

PROFILE: Final = "BENCH_PROFILE"

Stats = Mapping[tuple[str, int, str], tuple[int, int, float, float, Any]]
"""By (file, line, function): calls, calls, own seconds, seconds with what it calls, callers."""

_profiles: list[cProfile.Profile] = []


def _profiled(function: Callable[..., Any], only: str = "") -> Callable[..., Any]:
    """`function` under a profile of its own, in threads whose name starts with `only`."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        if not threading.current_thread().name.startswith(only):
            return function(*arguments)
        profile = cProfile.Profile(time.thread_time)
        _profiles.append(profile)
        return profile.runcall(function, *arguments)

    return run


def main() -> None:
    """The command line of the service; its event loop is profiled as well."""
    Keeper._run = _profiled(Keeper._run)  # type: ignore[method-assign]
    Intake._run = _profiled(Intake._run)  # type: ignore[method-assign]
    pool._worker = _profiled(pool._worker, "decode")
    try:
        _profiled(cli)()
    finally:
        found: list[Stats] = []
        for profile in _profiles:
            profile.create_stats()
            found.append(profile.stats)
        Path(os.environ[PROFILE]).write_bytes(marshal.dumps(found))


if __name__ == "__main__":
    main()
