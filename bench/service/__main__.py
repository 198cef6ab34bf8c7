"""The whole service, from a sender's socket to durable rows.

python -m bench.service [--seconds 20] [--repeats 3]
"""

import argparse

from bench.figures import show
from bench.service.report import figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of sending, a run")
    parser.add_argument("--repeats", type=int, default=3, help="of the main figure")
    arguments = parser.parse_args()
    show(*figures(arguments.seconds, arguments.repeats))


if __name__ == "__main__":
    main()
