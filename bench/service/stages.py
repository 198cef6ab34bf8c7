"""Where a span's CPU time goes, from the socket to the disk.

    python -m bench.service.stages [--seconds 12]

The same run as the main figure, under a profiler: shares are right, the sum is a little high.
"""

import argparse
import marshal
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Figure, show
from bench.service.profiled import PROFILE, Stats
from bench.service.sending import measure


@dataclass(frozen=True)
class Stage:
    """A function and what it calls, without the stages below it."""

    what: str
    file: str  # how its path ends
    function: str
    below: "tuple[Stage, ...]" = ()


def _stage(what: str, place: str, *below: Stage) -> Stage:
    file, _, function = place.rpartition(":")
    return Stage(what, file, function, below)


STAGES: Final = (
    _stage("HTTP: read, admit, answer", "uvicorn/protocols/http/httptools_impl.py:run_asgi"),
    _stage("HTTP: parse", "uvicorn/protocols/http/httptools_impl.py:data_received"),
    _stage("decode", "otlp/decoder.py:add"),
    _stage("copy decoded columns", "otlp/decoder.py:take"),
    _stage("log: frame, write, sync", "log/writer.py:append"),
    _stage(
        "pipeline.add: the rest",
        "collector/pipeline.py:add",
        _stage("judge times", "otlp/plausible.py:judge"),
        _stage("classify", "hops/classify.py:classify"),
        _stage("rows for the stitcher", "collector/pipeline.py:_fill_rows"),
        _stage(
            "take into the open table",
            "stitch/table.py:take",
            _stage("room in the open table", "stitch/table.py:_room_in_index"),
        ),
    ),
    _stage(
        "advance: the rest",
        "collector/pipeline.py:advance",
        _stage("find what is due", "stitch/table.py:due"),
        _stage(
            "stitch",
            "collector/pipeline.py:_stitch",
            _stage("note what was given", "stitch/notes.py:note"),
        ),
        _stage("let go of closed traces", "collector/pipeline.py:_evict"),
    ),
    _stage(
        "rollups, joining what is finished",
        "collector/pipeline.py:take_rows",
        _stage("request rows", "stitch/rows.py:requests_table"),
        _stage("span rows", "collector/pipeline.py:_spans_table"),
    ),
    _stage(
        "publish: the rest",
        "collector/publisher.py:publish",
        _stage("write segments", "store/writing.py:write_segment"),
        _stage("series of /metrics", "app/exposition.py:observe"),
    ),
    _stage("snapshot", "collector/snapshot.py:save"),
)


def figures(seconds: float) -> list[Figure]:
    """CPU microseconds a span, stage by stage; then what no stage explains."""
    with tempfile.TemporaryDirectory(prefix="tailburn-bench-") as folder:
        profile = Path(folder) / "profile"
        os.environ[PROFILE] = str(profile)
        run = measure(Path(folder), seconds, module=("-m", "bench.service.profiled"))
        found: list[Stats] = marshal.loads(profile.read_bytes())
    spans = run.balance["stored"]
    shown = [Figure(what, [s / spans * 1e6], "us/span") for what, s in _seconds(STAGES, found)]
    return [*shown, Figure("the whole process", [run.cpu_s / run.measured_spans * 1e6], "us/span")]


def _seconds(stages: Sequence[Stage], found: Sequence[Stats]) -> list[tuple[str, float]]:
    """What each stage took, without the stages below it."""
    rows = []
    for stage in stages:
        below = sum(_with_all(inner, found) for inner in stage.below)
        rows.append((stage.what, _with_all(stage, found) - below))
        rows += _seconds(stage.below, found)
    return rows


def _with_all(stage: Stage, found: Sequence[Stats]) -> float:
    return sum(
        values[3]
        for stats in found
        for (file, _, function), values in stats.items()
        if function == stage.function and file.endswith(stage.file)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=12.0, help="of sending")
    show(figures(parser.parse_args().seconds))


if __name__ == "__main__":
    main()
