"""Plausible attempts and wirings, drawn from a seed: a fleet without a world."""

from typing import Any

import numpy as np

from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.telemetry.spans import Place, Wiring

MS = 1_000_000
S = 1_000 * MS


def wiring(client: str = "app", gateway: str = "fastapi", router: str = "none",
           engine: str = "vllm", **more: Any) -> Wiring:  # fmt: skip
    """Three clients, two gateways, a router and four replicas of one stack each."""
    return Wiring(
        clients=tuple(Place(f"client-{i}", client, host=f"c{i}", port=0) for i in range(3)),
        gateways=tuple(
            Place(f"gw-{i}", gateway, host=f"g{i}", address=f"10.0.1.{i}", port=8200)
            for i in range(2)
        ),
        routers=(Place("router-0", router, host="r0", address="10.0.2.0", port=25100),),
        engines=tuple(
            Place(f"replica-{i}", engine, host=f"e{i}", address=f"10.0.3.{i}", port=8100)
            for i in range(4)
        ),
        models=("tiny-llama", "tiny-qwen"),
        **more,
    )


def attempts(rows: int = 200, *, seed: int = 1, rate: float = 20.0, router: bool = False,
             tokens: bool = False, rag: bool = False, split: bool = False,
             cache: bool = False, failing: bool = True) -> Attempts:  # fmt: skip
    """Attempts that went through client, gateway (router) and engine; some fail on the way."""
    r = np.random.default_rng(seed)

    def wait(mean_ms: float, least_ms: float = 0.05) -> Any:
        return ((r.exponential(mean_ms, rows) + least_ms) * MS).astype(np.int64)

    a = Attempts.blank(rows)
    a.request[:] = np.arange(rows)
    a.arrival_ns[:] = np.cumsum(r.exponential(1 / rate, rows) * S).astype(np.int64)
    a.client[:], a.gateway[:] = r.integers(0, 3, rows), r.integers(0, 2, rows)
    a.replica[:], a.model[:] = r.integers(0, 4, rows), r.integers(0, 2, rows)
    a.prompt_tokens[:] = r.integers(4, 4000, rows)
    a.cached_tokens[:] = a.prompt_tokens // 3
    a.max_tokens[:] = r.integers(1, 200, rows)
    a.output_tokens[:] = a.output_done[:] = r.integers(1, a.max_tokens + 1)
    a.streamed[:] = r.random(rows) < 0.9
    a.rag[:] = rag
    a.outcome[:], a.http_status[:] = Outcome.OK, 200
    a.decode_steps[:] = a.output_done
    at = a.client_start[:] = a.arrival_ns
    at = a.client_slot[:] = at + wait(0.1)
    at = a.client_connected[:] = at + wait(0.3)
    at = a.gateway_in[:] = at + wait(3, 1)
    at = a.gateway_authed[:] = at + wait(1)
    if rag:
        a.guardrail_start[:] = at
        at = a.guardrail_end[:] = at + wait(10)
        a.retrieval_start[:] = at
        at = a.retrieval_end[:] = at + wait(30)
    at = a.gateway_out[:] = at + wait(1)
    if router:
        at = a.router_in[:] = at + wait(0.2)
        at = a.router_queued_end[:] = at + wait(5)
        at = a.router_out[:] = at + wait(0.2)
    at = a.engine_in[:] = at + wait(0.2)
    at = a.tokenize_start[:] = at + wait(0.1)
    at = a.tokenize_end[:] = at + wait(2)
    at = a.queued[:] = at + wait(0.2)
    if cache:
        a.kv_load_start[:] = at
        at = a.kv_load_end[:] = at + wait(20)
    at = a.scheduled[:] = at + wait(50, 0.0)
    at = a.prefill_end[:] = at + wait(80, 5)
    if split:
        a.prefill_replica[:] = (a.replica + 1) % 4
        a.kv_transfer_start[:] = at
        at = a.kv_transfer_end[:] = at + wait(4, 2)
    at = a.engine_first[:] = at + wait(0.3)
    gaps = r.gamma(4.0, 5.0, (rows, 200)) * MS
    when = np.concatenate([np.zeros((rows, 1)), np.cumsum(gaps, axis=1)], axis=1).astype(np.int64)
    a.engine_last[:] = at + when[np.arange(rows), a.output_done - 1]
    a.engine_end[:] = a.engine_last + wait(0.2)
    back = wait(3, 1)
    if router:
        a.router_first[:], a.router_end[:] = a.engine_first + MS // 5, a.engine_end + MS // 5
    a.gateway_first[:] = a.engine_first + wait(1, 0.6)
    a.gateway_last[:] = np.maximum(a.engine_end + MS // 2, a.gateway_first)
    whole = a.streamed == 0
    a.gateway_first[whole] = a.gateway_last[whole]
    a.client_first[:], a.client_last[:] = a.gateway_first + back, a.gateway_last + back
    a.client_end[:] = a.client_last + MS // 4
    if tokens:
        a.token_offset = np.concatenate([[0], np.cumsum(a.output_done)]).astype(np.int64)
        a.tokens = np.concatenate(
            [a.engine_first[i] + when[i, : a.output_done[i]] for i in range(rows)]
        )
    if failing:
        _fail(a, r)
    return a


def _fail(a: Attempts, r: np.random.Generator) -> None:
    """One in 20 is cancelled in mid-stream, one in 40 refused at the gateway."""
    kind = r.random(len(a))
    left = (kind < 0.05) & (a.output_done > 3) & (a.streamed == 1)
    middle = (a.client_first + a.client_last) // 2
    a.outcome[left] = Outcome.CANCELLED
    a.client_end[left] = a.client_last[left] = middle[left]
    a.aborted[left] = middle[left] + 5 * MS
    a.gateway_last[left] = middle[left] + 2 * MS
    a.engine_last[left] = a.engine_end[left] = -1
    refused = (kind > 0.975) & ~left
    a.outcome[refused], a.http_status[refused] = Outcome.REJECTED, 429
    a.gateway_last[refused] = a.gateway_first[refused] = a.gateway_in[refused] + MS
    a.client_end[refused] = a.gateway_in[refused] + 4 * MS
    a.output_done[refused] = 0
    for name in _AFTER_GATEWAY:
        getattr(a, name)[refused] = -1


_AFTER_GATEWAY = [
    "guardrail_start", "guardrail_end", "retrieval_start", "retrieval_end", "gateway_out",
    "router_in", "router_queued_end", "router_out", "engine_in", "tokenize_start",
    "tokenize_end", "queued", "kv_load_start", "kv_load_end", "scheduled", "prefill_end",
    "kv_transfer_start", "kv_transfer_end", "engine_first", "engine_last", "engine_end",
    "router_first", "router_end", "client_first", "client_last",
]  # fmt: skip
