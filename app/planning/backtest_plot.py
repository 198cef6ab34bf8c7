"""A backtest as a picture: what budgets had left, alerts and incidents on one axis of time."""

from pathlib import Path
from typing import Any, Final

import pandas as pd

from tailburn.app.errors import UserError
from tailburn.app.planning.backtesting import Backtest

FORMATS: Final = (".svg", ".png")
_COLOURS: Final = {"page": "#c0392b", "ticket": "#e6a23c", "incident": "#7f8c8d", "hole": "#d5d8dc"}
_WIDTH: Final = 900


def check_format(path: Path) -> None:
    """Raises UserError for a file that is no picture."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"--plot {path}: want a file that ends in {' or '.join(FORMATS)}")


def write_plot(found: Backtest, path: Path) -> None:
    """Write the picture in the format of the file's name. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _chart(found).save(str(path), format=path.suffix.lower().removeprefix("."))
    except OSError as error:
        raise UserError(f"--plot {path}: can't be written: {error.strerror}") from error


def _chart(found: Backtest) -> Any:
    import altair as alt

    domain = [pd.Timestamp(ns, tz="UTC").isoformat() for ns in (found.since_ns, found.until_ns)]
    time = alt.X("time:T", title=None, scale=alt.Scale(domain=domain, type="utc"))
    left = found.budgets.dropna(subset=["left"]).assign(
        budget=lambda rows: rows["objective"] + " of " + rows["slo"] + " " + rows["by"],
        left=lambda rows: rows["left"].clip(lower=-1),
    )
    lines = (
        alt.Chart(left, width=_WIDTH, height=260)
        .mark_line(clip=True)
        .encode(x=time, y=alt.Y("left:Q", title="budget left", axis=alt.Axis(format="%")),
                color=alt.Color("budget:N", title=None, legend=alt.Legend(labelLimit=0)))
    )  # fmt: skip
    spans = _spans(found)
    if spans.empty:
        return lines
    order = [kind for kind in _COLOURS if kind in set(spans["kind"])]
    colours = alt.Scale(domain=order, range=[_COLOURS[kind] for kind in order])
    bars = (
        alt.Chart(spans, width=_WIDTH, height=22 * len(order))
        .mark_bar(clip=True, strokeWidth=1)  # a stroke, so that a short one is seen
        .encode(
            x=alt.X("begin:T", title=None, scale=alt.Scale(domain=domain, type="utc")),
            x2="end:T",
            y=alt.Y("kind:N", title=None, sort=order),
            color=alt.Color("kind:N", legend=None, scale=colours),
            stroke=alt.Stroke("kind:N", legend=None, scale=colours),
        )
    )
    return alt.vconcat(bars, lines).resolve_scale(color="independent")


def _spans(found: Backtest) -> pd.DataFrame:
    told = [
        *(("incident", m.start_ns, m.end_ns) for m in found.marked),
        *(("hole", *span) for span in found.holes),
        *((f.key.severity, *f.span(found.until_ns)) for f in found.fired),
    ]
    rows = [
        {"kind": kind, "begin": pd.Timestamp(begin, tz="UTC"), "end": pd.Timestamp(end, tz="UTC")}
        for kind, begin, end in told
    ]
    return pd.DataFrame(rows, columns=["kind", "begin", "end"])
