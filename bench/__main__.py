"""Every figure of the project, each beside a baseline of the same run, in one table.

    python -m bench [--seconds 20] [--repeats 3]

About fifteen minutes. The service is measured first, while nothing else of the run is warm.
"""

import argparse
from itertools import chain

from bench import baseline, decode, evaluation, histogram, log, signals, store
from bench.figures import show
from bench.lab import figures as lab
from bench.lab.ear import load as ear
from bench.rules import cost
from bench.service import report


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of sending, a run")
    parser.add_argument("--repeats", type=int, default=3, help="of the main figure")
    arguments = parser.parse_args()
    whole, notes = report.figures(arguments.seconds, arguments.repeats)
    parts = chain(
        decode.figures(),
        log.figures(),
        store.figures(),
        histogram.figures(),
        baseline.figures(),
        evaluation.figures(),
        signals.figures(),
        cost.figures(),
        lab.figures(),
        ear.figures(seconds=arguments.seconds),
    )
    show([*whole, *parts], [*notes, *filter(None, [lab.note()])])


if __name__ == "__main__":
    main()
