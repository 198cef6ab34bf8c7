"""The ear under the lab: its rows beside what was true, by stacks, and what it spends on them.

    python -m bench.lab.ear [--requests 300] [--seed 5] [--only TEXT] [--broken] [--verbose]
    python -m bench.lab.ear --load [--rate 100] [--minutes 5] [--seconds 20]

Exit code 1 when a check fails or a span is lost.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.figures import show
from bench.lab.ear import load
from bench.lab.ear.broken import BROKEN
from bench.lab.ear.chains import CHAINS
from bench.lab.ear.feeding import rows_of
from bench.lab.ear.listening import listen, lost, scenes_for, verdicts
from bench.lab.ear.table import failures, table
from bench.service.running import serving


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, or the figures under load; 0 when all holds."""
    options = _options(arguments)
    if options.load:
        show(load.figures(options.rate, options.minutes, options.seconds, options.seed))
        return 0
    chains = [chain for chain in CHAINS if options.only in chain.name]
    if not chains:
        print(f"--only {options.only}: no such stack; want part of one of", file=sys.stderr)
        print("\n".join(f"  {chain.name}" for chain in CHAINS), file=sys.stderr)
        return 2
    ways = (None, *BROKEN) if options.broken else (None,)
    told = [(chain, way) for way in ways for chain in chains]
    scenes = scenes_for(chains, options.requests, options.seed)
    with tempfile.TemporaryDirectory(prefix="tailburn-bench-") as folder:
        with serving(Path(folder), flags=("--clock", "telemetry")) as service:
            heard = listen(f"http://127.0.0.1:{service.ports['OTLP/HTTP']}", scenes, told)
            gone = lost(heard, service.balance)
        found = verdicts(heard, rows_of(service.store))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table(found))
    console.print(f"spans lost: {gone}")
    for line in failures(found, 1_000 if options.verbose else 3):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0 if gone == 0 and all(verdict.passed for verdict in found) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.lab.ear", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("--requests", type=int, default=300, help="a scene")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", default="", help="stacks whose name has this text")
    parser.add_argument("--broken", action="store_true", help="with broken telemetry too")
    parser.add_argument("--verbose", action="store_true", help="every request that fails")
    parser.add_argument("--load", action="store_true", help="what the ear spends instead")
    parser.add_argument("--rate", type=float, default=100.0, help="of the load, req/s")
    parser.add_argument("--minutes", type=int, default=5, help="of the load, in the lab's time")
    parser.add_argument("--seconds", type=float, default=20.0, help="of what it is beside")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
