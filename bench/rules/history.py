"""Past samples for a Prometheus: as long back as rules look, and no longer.

As in one that has run for long, the last two hours are in its memory, all before in blocks.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

Labels = Mapping[str, str]

_READ: Final = re.compile(
    r"(?P<metric>[a-zA-Z_][\w:]*)\{[^}]*\}\[(?P<range>[\dsmhd]+)\]"
    r"(?: offset (?P<offset>[\dsmhd]+))?"
)
_PART: Final = re.compile(r"(\d+)([smhd])")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MARGIN_S: Final = 900  # what is read up to now was written a little before it
_IN_MEMORY_S: Final = 7200


@dataclass(frozen=True)
class Series:
    """One series every `step_s`. A counter rises by about `rise` a step; others go up and down."""

    metric: str
    labels: Labels
    step_s: int
    back_s: int
    rise: float = 0.0
    ahead_s: int = 0  # samples that lie in the future still: nothing is scraped meanwhile


def seconds(duration: str) -> int:
    return sum(int(count) * _UNITS_S[unit] for count, unit in _PART.findall(duration))


def looked_back(expressions: Iterable[str]) -> dict[str, int]:
    """How many seconds back each metric is read."""
    found: dict[str, int] = {}
    for expression in expressions:
        for read in _READ.finditer(expression):
            back_s = seconds(read["range"]) + seconds(read["offset"] or "")
            found[read["metric"]] = max(found.get(read["metric"], 0), back_s)
    return found


def write(promtool: str, series: Iterable[Series], folder: Path, now_s: int) -> None:
    """`folder`/tsdb with its blocks, and `folder`/memory.txt, a page to be scraped once."""
    blocks = folder / "blocks.om"
    with blocks.open("w") as old, (folder / "memory.txt").open("w") as new:
        last = ""
        for one in sorted(series, key=lambda s: s.metric):
            if one.metric != last:
                kind = "counter" if one.metric.endswith("_total") else "unknown"
                old.write(f"# TYPE {one.metric.removesuffix('_total')} {kind}\n")
                last = one.metric
            for at_s, line in _samples(one, now_s):
                if at_s < now_s - _IN_MEMORY_S:
                    old.write(f"{line} {at_s}\n")
                else:
                    new.write(f"{line} {at_s}000\n")
        old.write("# EOF\n")
    command = [promtool, "tsdb", "create-blocks-from", "--max-block-duration=720h"]
    subprocess.run([*command, "openmetrics", "-q", blocks, folder / "tsdb"], check=True)
    blocks.unlink()


def _samples(series: Series, now_s: int) -> Iterator[tuple[int, str]]:
    labels = ",".join(f'{name}="{value}"' for name, value in series.labels.items())
    count = (series.back_s + _MARGIN_S + series.ahead_s) // series.step_s
    drawn = np.random.default_rng(len(labels)).uniform(0.95, 1.05, count).round(3)
    values = np.cumsum(np.rint(drawn * series.rise)) if series.rise else drawn
    begin_s = now_s + series.ahead_s - count * series.step_s
    for i, value in enumerate(values.tolist()):
        yield begin_s + i * series.step_s, f"{series.metric}{{{labels}}} {value}"
