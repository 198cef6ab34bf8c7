"""`tailburn scaling`: what a running service tells autoscalers, and why."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tailburn.app.asking import ask
from tailburn.app.errors import UserError
from tailburn.app.standing.words import moment, values_of
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.names import SCALE_HOLD_RECORD, scale_signal
from tailburn.engine.problems import one_of
from tailburn.engine.scaling.signals import SPEAKS_ABOVE

_SPEAKS: Final = {scale_signal(record): above for record, above in SPEAKS_ABOVE.items()}
_HOLD: Final = scale_signal(SCALE_HOLD_RECORD)


def show_scaling(url: str, token: str | None, slo: str | None, json: bool) -> None:
    """Print how every signal stands. Raises UserError."""
    rows = ask(url, "/api/scaling", token)
    if slo is not None:
        names = {row["slo"] for row in rows}
        if slo not in names:
            raise UserError(f"--slo: {slo!r} {one_of(slo, names)}")
        rows = [row for row in rows if row["slo"] == slo]
    if json:
        json_lines(rows)
    elif not rows:
        stderr().print("no SLO of the service says when to scale: scale_out and a p99 of ttft")
    else:
        _draw(rows)


def _draw(rows: Sequence[Mapping[str, Any]]) -> None:
    has_values = any(row["by"] for row in rows)
    drawn = table(["slo", *(["of"] if has_values else []), "signal"], ["value"])
    drawn.add_column("says")
    drawn.add_column("since", no_wrap=True)
    drawn.add_column("why", overflow="fold")
    for row in rows:
        for name, signal in row["signals"].items():
            if name in _SPEAKS:
                cells = [row["slo"], *([values_of(row["by"])] if has_values else []), name]
                value = signal["value"]
                told = "" if value is None else f"{value:.2f}"
                cells += [told, _says(name, value), moment(signal["since_ns"]), signal["why"]]
                is_loud = value is not None and value > _SPEAKS[name] and name != _HOLD
                drawn.add_row(*(plain(cell, "bold" if is_loud else "") for cell in cells))
    draw(drawn, stdout())


def _says(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    speaks = value > _SPEAKS[name]
    if name == _HOLD:
        return "hold" if speaks else "one may go"
    return "add replicas" if speaks else "enough"
