"""What was true of each request, by the lab's own instants and the ear's definitions.

Clocks start and stop as the design says. The breakdown to the first token gives every instant
to the deepest hop that was active then; what follows the engine's first token belongs outward.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tailburn.engine.names import HOP_INDEX
from tailburn.lab.records import Attempts, Outcome

OUTCOMES: Final = {
    Outcome.OK: "ok",
    Outcome.ERROR: "error",
    Outcome.CLIENT_TIMEOUT: "error",
    Outcome.CANCELLED: "cancelled",
    Outcome.REJECTED: "error",
}
NEVER: Final = -1


@dataclass(frozen=True)
class Truth:
    """One request: all its tries, and the one that its user got. Times in s; None: was not."""

    request: int
    tries: tuple[int, ...]
    """Rows of the attempts, as they began."""
    last: int
    """The row of the try that the client's call ended with."""
    outcome: str
    streamed: bool
    hedged: bool
    clocks: dict[str, float | None]
    ttft_hops: dict[str, float]
    """Of a request that was tried once and streamed to its end."""
    values: dict[str, Any]

    @property
    def once(self) -> bool:
        return len(self.tries) == 1


def truths(attempts: Attempts) -> Iterator[Truth]:
    """Each request that was over, in the order of arrival."""
    order = np.lexsort((attempts.client_start, attempts.request))
    owner = attempts.request[order]
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    for begin, end in zip(first, np.append(first[1:], len(order)), strict=True):
        rows = tuple(order[begin:end].tolist())
        ended = [r for r in rows if attempts.followed[r] != 1]
        if len(ended) == 1:
            yield _truth(attempts, rows, ended[0])


def _truth(a: Attempts, rows: tuple[int, ...], last: int) -> Truth:
    at = {name: int(column[last]) for name, column in a.arrays().items()}
    whole = at["outcome"] == Outcome.OK
    streamed = at["streamed"] == 1
    told = whole and streamed and len(rows) == 1
    return Truth(
        request=at["request"],
        tries=rows,
        last=last,
        outcome=OUTCOMES[Outcome(at["outcome"])],
        streamed=streamed,
        hedged=bool(a.hedge[list(rows)].any()),
        clocks=_clocks(at),
        ttft_hops=hops_to_first(at) if told else {},
        values=at,
    )


def _clocks(at: dict[str, int]) -> dict[str, float | None]:
    made = at["output_done"]

    def between(begun: str, ended: str) -> float | None:
        if at[begun] == NEVER or at[ended] == NEVER:
            return None
        return (at[ended] - at[begun]) / 1e9

    def tpot(first: str, last: str) -> float | None:
        stay = between(first, last)
        return None if stay is None or made < 2 else stay / (made - 1)

    return {
        "ttft_client_s": between("arrival_ns", "client_first"),
        "ttft_gateway_s": between("gateway_in", "gateway_first"),
        "ttft_router_s": between("router_in", "router_first"),
        "ttft_engine_s": between("engine_in", "engine_first"),
        "e2e_client_s": between("arrival_ns", "client_end"),
        "e2e_gateway_s": between("gateway_in", "gateway_last"),
        "e2e_router_s": between("router_in", "router_end"),
        "e2e_engine_s": between("engine_in", "engine_last"),
        "tpot_client_s": tpot("client_first", "client_last"),
        "tpot_gateway_s": tpot("gateway_first", "gateway_last"),
        "tpot_router_s": tpot("router_first", "router_end"),
        "tpot_engine_s": tpot("engine_first", "engine_last"),
        "queue_s": between("queued", "scheduled"),
    }


BACK: Final = "back"
"""From the engine's first token until the gateway passed it on: the way back to the gateway."""
_DEPTH: Final = {**HOP_INDEX, BACK: HOP_INDEX["gateway"]}


def hops_to_first(at: dict[str, int]) -> dict[str, float]:
    """Seconds that each hop held before the client's first token; they sum to it."""
    first = at["engine_first"]
    behind = "router" if at["router_in"] >= 0 else "engine"
    stays = (
        ("client", at["arrival_ns"], at["client_first"]),
        ("client>gateway", at["client_start"], at["gateway_in"]),
        ("client>gateway", at["gateway_first"], at["client_first"]),
        ("gateway", at["gateway_in"], at["gateway_first"]),
        ("guardrail", at["guardrail_start"], at["guardrail_end"]),
        ("retrieval", at["retrieval_start"], at["retrieval_end"]),
        (f"gateway>{behind}", at["gateway_out"], at[f"{behind}_in"]),
        ("router", at["router_in"], at["router_out"]),
        ("router>engine", at["router_out"], at["engine_in"]),
        ("engine", at["engine_in"], first),
        ("tokenizer", at["tokenize_start"], at["tokenize_end"]),
        ("queue", at["queued"], at["scheduled"]),
        ("kv_load", at["kv_load_start"], at["kv_load_end"]),
        ("lora_load", at["lora_start"], at["lora_end"]),
        ("prefill", at["scheduled"], at["prefill_end"]),
        ("kv_transfer", at["kv_transfer_start"], at["kv_transfer_end"]),
        (BACK, first, at["gateway_first"]),
    )
    known = [(_DEPTH[hop], hop, b, e) for hop, b, e in stays if b != NEVER and e > b]
    cuts = sorted({t for _, _, b, e in known for t in (b, e)})
    held: dict[str, float] = {}
    for begin, end in zip(cuts, cuts[1:], strict=False):
        inside = [(depth, hop) for depth, hop, b, e in known if b <= begin and e >= end]
        if inside:
            deepest = max(inside, key=lambda one: one[0])[1]
            held[deepest] = held.get(deepest, 0.0) + (end - begin) / 1e9
    return held
