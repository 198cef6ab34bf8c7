"""Scrapes in files: one OpenMetrics text a target, with times, that Prometheus can take in.

    files = ScrapeFiles(folder, epoch_unix_ns)
    files.write(scrapes)
    files.close()                            # now the files are there
    # promtool tsdb create-blocks-from openmetrics FOLDER/vllm-0.om DATA

Values wait in binary beside the files until the end, for OpenMetrics wants a metric's samples
together. A metric's labels are those it has in a Prometheus: the target's own are added, and a
label of both is `exported_`. The gauges `_created` are left out.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.telemetry.metrics.listing import Target
from tailburn.lab.telemetry.metrics.metrics_text import Scrapes, of_scrape
from tailburn.lab.telemetry.metrics.page import Page, Series

F64 = NDArray[np.float64]

_LE: Final = re.compile(r'(^|,)le="[^"]*"')
_TOLD: Final = ("gauge", "histogram", "summary")
"""Types that OpenMetrics takes under any name; a counter has to end in `_total`."""


class ScrapeFiles:
    """Scrapes of all targets on their way into a folder. `scrapes` counts those written."""

    def __init__(self, folder: Path, epoch_unix_ns: int) -> None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(f"{folder}: is there already; want a new or an empty folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._epoch = folder, epoch_unix_ns
        self._open: dict[str, IO[bytes]] = {}
        self._pages: dict[str, tuple[Target, Page]] = {}
        self._times = (folder / "times.bin").open("wb")
        self.scrapes = 0

    def write(self, scrapes: Scrapes) -> None:
        """Add scrapes, in order of time."""
        if not len(scrapes):
            return
        self._times.write(scrapes.at_ns.tobytes())
        for target in scrapes.targets:
            if target.name not in self._open:
                self._open[target.name] = (self._folder / f"{target.name}.bin").open("wb")
                self._pages[target.name] = target, scrapes.pages[target.name]
            shown, late = scrapes.shown(target)
            more = np.column_stack([shown, *of_scrape(late).values()])
            self._open[target.name].write(np.ascontiguousarray(more).tobytes())
        self.scrapes += len(scrapes)

    def close(self) -> tuple[Path, ...]:
        """Write the files; what waited is gone then."""
        self._times.close()
        times = self._folder / "times.bin"
        at_s = (np.fromfile(times, np.int64) + self._epoch) / 1e9
        stamps = [f"{one:.3f}" for one in at_s.tolist()]
        times.unlink()
        written = []
        for name, file in self._open.items():
            file.close()
            waiting = self._folder / f"{name}.bin"
            target, page = self._pages[name]
            values = np.memmap(waiting, np.float64, "r").reshape(len(stamps), -1)
            path = self._folder / f"{name}.om"
            with path.open("w") as out:
                for text in open_metrics(target, page, values, stamps):
                    out.write(text)
            del values
            waiting.unlink()
            written.append(path)
        self._open = {}
        return tuple(written)


def open_metrics(target: Target, page: Page, values: F64, stamps: list[str]) -> Iterator[str]:
    """A target's whole text: metric by metric, series by series, scrape by scrape.

    `values` [scrape, series of the page, then those of `of_scrape`]; NaN: not there.
    """
    own = [Series(name, "", "gauge", name) for name in of_scrape(np.empty(0))]
    series = [*page.series, *own]
    families: dict[str, list[int]] = {}
    for i, one in enumerate(series):
        if not one.name.endswith("_created"):
            families.setdefault(one.family, []).append(i)
    for family, columns in families.items():
        kind = series[columns[0]].kind
        counts = kind == "counter" and family.endswith("_total")
        name = family.removesuffix("_total") if counts else family
        called = kind if counts or kind in _TOLD else "unknown"
        yield f"# TYPE {name} {called}\n"
        for group in _groups(series, columns):
            heads = [f"{series[i].name}{{{_labels(target, series[i].labels)}}} " for i in group]
            told = values[:, group].tolist()
            yield "".join(
                f"{head}{value!r} {stamp}\n"
                for row, stamp in zip(told, stamps, strict=True)
                for head, value in zip(heads, row, strict=True)
                if value == value
            ).replace(" inf ", " +Inf ")
    yield "# EOF\n"


def _groups(series: Sequence[Series], columns: Sequence[int]) -> list[list[int]]:
    """The series of a family that are told together, scrape by scrape: a histogram's parts."""
    found: dict[str, list[int]] = {}
    for i in columns:
        found.setdefault(_LE.sub("", series[i].labels).strip(","), []).append(i)
    return list(found.values())


def _labels(target: Target, labels: str) -> str:
    """The target's labels before the metric's own."""
    own = labels
    for key in target.labels:
        if labels.startswith(f'{key}="') or f',{key}="' in labels:
            own = f",{own}".replace(f',{key}="', f',exported_{key}="')[1:]
    given = ",".join(f'{key}="{value}"' for key, value in target.labels.items())
    return f"{given},{own}" if own else given
