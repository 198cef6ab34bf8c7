"""The options of `tailburn lab run`, read and checked before anything is made."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from tailburn.app.errors import UserError
from tailburn.engine.slo.quantities import read_time_s
from tailburn.lab.run.compose import Composed, Thin, compose
from tailburn.lab.run.motion import Plan
from tailburn.lab.run.stacks import read_stacks
from tailburn.lab.telemetry.sender import trace_url
from tailburn.lab.workload import FIGURES, Profile, load, named

SECOND_NS: Final = 10**9
TRUTH_FOLDER: Final = Path("var/lab/truth")
MOST_PER_S: Final = 100_000.0
MOST_HOURS: Final = 24.0 * 400


@dataclass(frozen=True)
class Asked:
    """A run as asked for. Times are in ns, those of the fault since the run's epoch."""

    composed: Composed
    epoch_unix_ns: int
    until_ns: int | None
    """None: until it is interrupted."""
    live_from_ns: int | None
    """When it has caught up with the wall; None: it never keeps the wall's time."""
    collector_ns: int
    metrics_port: int
    to: str | None
    out: Path | None
    truth: Path
    keeps_attempts: bool
    """Whether the truth has a row for each attempt too."""
    token: str | None
    planned_end_ns: int
    """When it ends, or of an endless run its last fault."""

    @property
    def plan(self) -> Plan:
        return self.composed.plan

    @classmethod
    def of(
        cls,
        scenarios: Sequence[str],
        *,
        severity: str,
        rate: float,
        hours: float | None,
        live: bool,
        seed: int,
        workload: str | None,
        stacks: Sequence[str],
        epoch: str | None,
        begin: str | None,
        lasts: str | None,
        ramp: str,
        to: str | None,
        out: Path | None,
        truth: Path | None,
        token: str | None,
        collector: str,
        metrics_port: int,
        services: int,
        past_rate: float | None,
    ) -> Self:
        """From the options as typed. Raises UserError for the first that cannot be."""
        if (to is None) == (out is None):
            raise UserError("lab run takes one of --to URL and --out DIR")
        if live and epoch is not None:
            raise UserError("--live ends in the present; it takes no --epoch")
        for flag, given in (("--rate", rate), ("--past-rate", past_rate)):
            if given is not None and not 0 < given < MOST_PER_S:
                raise UserError(f"{flag} {given:g}: want more than 0 and under {MOST_PER_S:g}")
        if past_rate is not None and not live:
            raise UserError("--past-rate is for the past of a --live run")
        length_ns = _length_ns(hours, live)
        begin_ns, end_ns = _when(begin, lasts, length_ns, live)
        try:
            if to is not None:
                trace_url(to)
            composed = compose(
                scenarios,
                per_s=rate,
                seed=seed,
                severity=severity,
                begin_ns=begin_ns,
                end_ns=end_ns,
                ramp_ns=_time_ns("--ramp", ramp),
                profile=None if workload is None else _workload(workload),
                stacks=read_stacks(stacks),
                services=services,
                thin=_thin(rate, past_rate, length_ns),
                at_noon=live,
            )
        except ValueError as error:
            raise UserError(str(error)) from None
        return cls(
            composed=composed,
            epoch_unix_ns=time.time_ns() - length_ns if epoch is None else _epoch_ns(epoch),
            until_ns=None if live else length_ns,
            live_from_ns=length_ns if live else None,
            collector_ns=_time_ns("--collector", collector),
            metrics_port=metrics_port,
            to=to,
            out=out,
            truth=truth or (out / "truth" if out is not None else TRUTH_FOLDER),
            keeps_attempts=truth is not None or out is not None,
            token=token,
            planned_end_ns=max(length_ns, end_ns) if live else length_ns,
        )


def _workload(text: str) -> Profile:
    """One by its name, or that of a file. Raises WorkloadError for neither."""
    path = Path(text)
    is_file = path.exists() or path.suffix or path.name != text
    return load(path) if is_file and text not in FIGURES else named(text)


def _thin(rate: float, past_rate: float | None, length_ns: int) -> Thin | None:
    """The past up to its last hour at another rate."""
    until_ns = length_ns - 3600 * SECOND_NS
    return None if past_rate is None or until_ns <= 0 else Thin(past_rate / rate, until_ns)


def _length_ns(hours: float | None, live: bool) -> int:
    if hours is None:
        hours = 0.0 if live else 1.0
    if not (0 < hours <= MOST_HOURS or (live and hours == 0)):
        raise UserError(f"--hours {hours:g}: want more than 0 and at most {MOST_HOURS:g}")
    return round(hours * 3600) * SECOND_NS


def _when(begin: str | None, lasts: str | None, length_ns: int, live: bool) -> tuple[int, int]:
    """When a fault begins and ends."""
    if begin is None:
        begin_ns = length_ns + 120 * SECOND_NS if live else length_ns // 2
    else:
        before = begin.startswith("-")
        given_ns = _time_ns("--begin", begin.removeprefix("-"))
        if before and not live:
            raise UserError(f"--begin {begin}: want a time into the run, such as 30m")
        begin_ns = (length_ns if live else 0) + (-given_ns if before else given_ns)
    if lasts is not None:
        takes_ns = _time_ns("--lasts", lasts)
    else:
        takes_ns = 20 * 60 * SECOND_NS if live else max(length_ns // 4, SECOND_NS)
    if begin_ns < 0 or (not live and begin_ns >= length_ns):
        raise UserError(f"--begin {begin}: the run lasts {length_ns / 3.6e12:g} h")
    if takes_ns <= 0:
        raise UserError(f"--lasts {lasts}: want more than 0")
    return begin_ns, begin_ns + takes_ns


def _time_ns(flag: str, text: str) -> int:
    seconds = read_time_s(text)
    if seconds is None:
        raise UserError(f"{flag} {text}: want a number and its unit, such as 90s, 10m, 2h")
    return round(seconds * SECOND_NS)


def _epoch_ns(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UserError(f"--epoch {text}: want a time such as 2026-11-30T00:00Z") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp()) * SECOND_NS
