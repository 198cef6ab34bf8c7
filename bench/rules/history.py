"""Past samples for a Prometheus: as long back as rules look, and no longer."""

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


@dataclass(frozen=True)
class Series:
    """One series every `step_s`. A counter rises by about `rise` a step; others go up and down."""

    metric: str
    labels: Labels
    step_s: int
    back_s: int
    rise: float = 0.0


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


def write_blocks(promtool: str, series: Iterable[Series], folder: Path, end_s: int) -> None:
    """Adds blocks to the TSDB in `folder`, up to `end_s`."""
    text = folder.with_suffix(".om")
    with text.open("w") as file:
        last = ""
        for one in sorted(series, key=lambda s: s.metric):
            if one.metric != last:
                kind = "counter" if one.metric.endswith("_total") else "unknown"
                file.write(f"# TYPE {one.metric.removesuffix('_total')} {kind}\n")
                last = one.metric
            file.writelines(_lines(one, end_s))
        file.write("# EOF\n")
    command = [promtool, "tsdb", "create-blocks-from", "--max-block-duration=720h"]
    subprocess.run([*command, "openmetrics", "-q", text, folder], check=True)
    text.unlink()


def _lines(series: Series, end_s: int) -> Iterator[str]:
    labels = ",".join(f'{name}="{value}"' for name, value in series.labels.items())
    count = (series.back_s + _MARGIN_S) // series.step_s
    drawn = np.random.default_rng(len(labels)).uniform(0.95, 1.05, count).round(3)
    values = np.cumsum(np.rint(drawn * series.rise)) if series.rise else drawn
    begin_s = end_s - count * series.step_s
    for i, value in enumerate(values.tolist()):
        yield f"{series.metric}{{{labels}}} {value} {begin_s + i * series.step_s}\n"
