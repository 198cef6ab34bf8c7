"""What clients do, a window against the same one some time before, as plain rows."""

from collections.abc import Sequence
from typing import Any, Final

from tailburn.app.answers.question import Question
from tailburn.engine.contract import (
    CONTRACT_COLUMNS,
    LEAST_COUNT,
    LEVEL,
    Behaviour,
    Check,
    Client,
    Kind,
    Verdict,
    contract,
)
from tailburn.engine.names import DIMENSIONS, UNKNOWN
from tailburn.engine.problems import nearest
from tailburn.engine.store.api import Store, UnknownColumn

CALLERS: Final = ("client", "tenant", "service")  # without --by, the first that is told
SHARES: Final = ("streamed", "capped", "retried", "hedged", "cancelled", "timed_out")
_SHOWN_NAMES = 5

_REMEDIES: Final = {
    Kind.NOT_STREAMING: "its last release, its SDK and whether it still asks for `stream`. Its "
    "users wait for whole answers, and an SLO on the first token sees fewer of its requests",
    Kind.RETRY_WAVE: "what fails first, its time-out, and its retries: fewer, with a budget and a "
    "back-off with jitter; every try the engine still works on is load",
}


def client_rows(
    store: Store, question: Question, ago_ns: int, by: str | None
) -> list[dict[str, Any]]:
    """A row per client, one for all, then one for each change judged; none without requests.

    `question.window` must have both ends. Raises StoreError.
    """
    if by is not None and by not in DIMENSIONS:
        raise UnknownColumn(
            f"can't tell clients by {by!r}{nearest(by, DIMENSIONS)}; want one of "
            + ", ".join(DIMENSIONS)
        )
    columns = (*((by,) if by else CALLERS), *CONTRACT_COLUMNS)
    now, before = (
        store.requests(asked.window, asked.where, columns=columns)
        for asked in (question, question.earlier(ago_ns))
    )
    if not len(now) and not len(before):
        return []
    caller = by or next((c for c in CALLERS if _is_told(now, c) or _is_told(before, c)), CALLERS[0])
    found = contract(now, before, caller)
    return [
        *(_client_row("client", caller, client) for client in found.clients),
        _client_row("total", caller, found.total),
        *(_check_row(caller, check) for check in found.checks),
    ]


def _is_told(requests: Any, column: str) -> bool:
    return bool(set(requests.column(column).unique().to_pylist()) - {None, UNKNOWN})


def _client_row(what: str, by: str, client: Client) -> dict[str, Any]:
    return {
        "what": what,
        "by": by,
        "name": client.name,
        **_figures("", client.now),
        **_figures("baseline_", client.before),
    }


def _figures(prefix: str, side: Behaviour) -> dict[str, Any]:
    figures: dict[str, Any] = {"count": side.count}
    for name in SHARES:
        share = getattr(side, name)
        figures |= {f"{name}_share": share.value, f"{name}_told": share.told}
    figures["attempts_per_request"] = side.attempts_per_request
    return {prefix + name: value for name, value in figures.items()}


def _check_row(by: str, check: Check) -> dict[str, Any]:
    now, before = check.client.now, check.client.before
    streaming = check.kind is Kind.NOT_STREAMING
    a, b = (now.streamed, before.streamed) if streaming else (now.retried, before.retried)
    row = {
        "what": "check",
        "by": by,
        "name": check.client.name,
        "kind": check.kind.value,
        "verdict": check.verdict.value,
        "share": a.value,
        "baseline_share": b.value,
        "told": a.told,
        "baseline_told": b.told,
        "p": check.p,
        "level": check.level,
    }
    if not streaming:
        row["attempts_per_request"] = now.attempts_per_request
        row["baseline_attempts_per_request"] = before.attempts_per_request
    if check.verdict is Verdict.FOUND:
        row["remedy"] = _REMEDIES[check.kind]
    return row


def finding(row: dict[str, Any], ago: str) -> str:
    """What a client does otherwise than before, with its figures and what to do."""
    past, told = f"{ago} before", f"of {row['told']:,} requests"
    was = f"{row['baseline_share']:.1%} of {row['baseline_told']:,}"
    if row["kind"] == Kind.NOT_STREAMING.value:
        said = f"streams {row['share']:.1%} {told}, {past} {was}"
    else:
        said = (
            f"tries {row['attempts_per_request']:.2f} times a request, {past} "
            f"{row['baseline_attempts_per_request']:.2f}; tried again: {row['share']:.1%} {told}, "
            f"{past} {was}"
        )
    chance = f"by chance {_chance(row['p'])}, level {row['level']:.2g}"
    return f"{row['name']}: {row['kind']}. It {said} ({chance}). Look at {row['remedy']}."


def _chance(p: float) -> str:
    return "under 1e-12" if p < 1e-12 else f"{p:.2g}"


def abstentions(rows: Sequence[dict[str, Any]], ago: str) -> list[str]:
    """What could not be judged and why, a line for each kind and reason."""
    reasons = {
        Verdict.THIN: f"under {LEAST_COUNT} requests that tell, now or {ago} before",
        Verdict.NOT_TOLD: f"no request that tells, now or {ago} before",
    }
    lines = []
    for kind in Kind:
        for verdict, reason in reasons.items():
            names = [
                row["name"] for row in rows if (row["kind"], row["verdict"]) == (kind, verdict)
            ]
            if names:
                more = len(names) - _SHOWN_NAMES
                listed = ", ".join(names[:_SHOWN_NAMES]) + (
                    f" and {more:,} more" if more > 0 else ""
                )
                lines.append(f"{kind}: not judged for {listed}: {reason}")
    return lines


def quiet(rows: Sequence[dict[str, Any]]) -> str | None:
    """What was judged and is as before; None where something was found or nothing judged."""
    verdicts = [row["verdict"] for row in rows]
    if Verdict.FOUND in verdicts or Verdict.QUIET not in verdicts:
        return None
    judged = verdicts.count(Verdict.QUIET)
    return f"Streaming and retries are as before: {judged:,} judged, level {LEVEL:g} for all."
