"""What became of a run, for who reads it on a terminal."""

from rich.table import Table

from tailburn.app.terminal.text import harmless, plain
from tailburn.app.wind_tunnel.asked import Asked
from tailburn.lab.run.drive import Summary
from tailburn.lab.run.truth import ATTEMPTS, TRUTH


def summary_table(asked: Asked, summary: Summary, end_ns: int) -> Table:
    """A line for each thing worth knowing."""
    drawn = Table.grid(padding=(0, 2))
    for name, told in _lines(asked, summary, end_ns):
        drawn.add_row(plain(name), plain(told))
    return drawn


def _lines(asked: Asked, summary: Summary, end_ns: int) -> list[tuple[str, str]]:
    s = summary
    faster = s.simulated_s / s.wall_s if s.wall_s else 0.0
    speed = "" if asked.live_from_ns is not None else f", {faster:,.0f} times as fast as life"
    lost = f"; {s.lost_spans:,} lost on their way, as asked" if s.lost_spans else ""
    lines = [("fleet", f"{asked.plan.fleet.name}, seed {asked.plan.seed}")]
    lines += [("broken", told) for told in broken_lines(asked)] or [("broken", "nothing")]
    lines += [
        ("run", f"{end_ns / 3.6e12:.2f} h in {s.wall_s:.1f} s{speed}"),
        ("requests", f"{s.requests:,} in {s.attempts:,} attempts, {s.failed:,} without an answer"),
        ("spans", f"{s.spans:,}{lost}"),
        ("bodies", f"{s.bodies:,}, {s.bytes / 1e6:,.1f} MB"),
    ]
    if s.scrapes:
        lines += [("scrapes", f"{s.scrapes:,}")]
    if asked.to is not None:
        lines += [
            (
                "sent",
                f"to {asked.to}: {s.retries:,} asked again, {s.refused_bodies:,} bodies refused, "
                f"{s.rejected_spans:,} spans rejected",
            )
        ]
        if s.unsent_bodies:
            lines += [("not sent", f"{s.unsent_bodies:,} bodies: it was interrupted")]
        if s.refused_bodies and s.last_error:
            lines += [("last error", harmless(s.last_error))]
    else:
        lines += [("written", f"{asked.out}; tailburn replay {asked.out} --store DIR takes it in")]
    files = f"{asked.truth / TRUTH}"
    if asked.keeps_attempts:
        files += f", {asked.truth / ATTEMPTS}"
    return [*lines, ("truth", files)]


def broken_lines(asked: Asked) -> list[str]:
    """Each scenario with when it was on, in minutes of the run."""
    return [
        f"{each.id} {each.name}, {fault.truth.severity}, "
        f"{_minutes(fault.truth.start_ns)} to {_minutes(fault.truth.end_ns)} of the run"
        for each, fault in zip(asked.composed.scenarios, asked.plan.faults, strict=True)
    ]


def _minutes(ns: int) -> str:
    hours, minutes = divmod(ns // (60 * 10**9), 60)
    return f"{hours}:{minutes:02}"
