"""What the clients of the captures wrote down about their own requests."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sent:
    """One request as its client saw it. Times are ns since the epoch, by the client's clock."""

    key: str  # run/phase/number, to be found again in the log
    phase: str
    trace_id: str  # 32 hex digits
    span_id: str  # of the span the client had open: the call itself, or its parent
    sent_ns: int
    first_ns: int | None  # first chunk with a token; None: not streamed, or none came
    end_ns: int
    streamed: bool
    outcome: str  # ok, error, cancelled
    prompt_tokens: int | None
    output_tokens: int | None
    request_id: str | None  # the x-request-id it sent
    tries: int | None  # upstream tries that a response header told; None: not told
    max_gap_ns: int | None  # longest gap between two chunks with tokens

    @property
    def ttft_s(self) -> float | None:
        return None if self.first_ns is None else (self.first_ns - self.sent_ns) / 1e9

    @property
    def e2e_s(self) -> float:
        return (self.end_ns - self.sent_ns) / 1e9


def json_lines(path: Path) -> Iterator[Mapping[str, object]]:
    """Each line of a JSON-lines file."""
    with path.open() as lines:
        for line in lines:
            yield json.loads(line)


def read_log(path: Path, runs: tuple[str, ...]) -> list[Sent]:
    """The requests of `runs` in a client's log; all of them when `runs` is empty."""
    return [_sent(raw) for raw in json_lines(path) if not runs or raw["run"] in runs]


def _sent(raw: Mapping[str, object]) -> Sent:
    number = raw.get("i", raw.get("request_id"))
    gaps = raw["gaps_ns"]
    assert isinstance(gaps, list)
    streamed = bool(raw["stream"])
    return Sent(
        key=f"{raw['run']}/{raw['phase']}/{number}",
        phase=str(raw["phase"]),
        trace_id=str(raw["trace_id"]),
        span_id=str(raw["span_id"]),
        sent_ns=_int(raw["t_send"]) or 0,
        first_ns=_int(raw["t_first"]) if streamed else None,
        end_ns=_int(raw["t_end"]) or 0,
        streamed=streamed,
        outcome=str(raw["status"]).partition(":")[0],
        prompt_tokens=_int(raw["prompt_tokens"]),
        output_tokens=_int(raw["output_tokens"]),
        request_id=_text(raw.get("request_id")),
        tries=_tries(raw.get("attempts")),
        max_gap_ns=max(gaps, default=None),
    )


def _tries(attempts: object) -> int | None:
    """Upstream tries of a gateway that counts its retries in a response header."""
    if not isinstance(attempts, list):
        return None
    retries = [a.get("litellm_attempted_retries") for a in attempts]
    return None if None in retries else sum(int(r) + 1 for r in retries)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
