"""What passes between the lab's parts: requests into the world, attempts out of it.

Structures of arrays: one numpy array a column, all of one length. Every column
says its dtype, unit and meaning (`columns()`). Times are int64 nanoseconds of
TRUE time since the epoch of the run (host clocks add their offset in telemetry);
-1 is an instant that did not happen, an index that points nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cache
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

I8 = NDArray[np.int8]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

NEVER = -1


class RequestType(IntEnum):
    """What kind of work a request is; the code in the column `request_type`."""

    CHAT = 0
    COMPLETION = 1
    DOCUMENT = 2
    BATCH = 3
    AGENT = 4


class Outcome(IntEnum):
    """How an attempt ended; the code in the column `outcome`."""

    OK = 0
    ERROR = 1
    CLIENT_TIMEOUT = 2
    CANCELLED = 3
    REJECTED = 4


@dataclass(frozen=True)
class Column:
    """One column as documented: `kind` is its dtype, `unit` what its numbers count."""

    name: str
    kind: "np.dtype[Any]"
    unit: str
    meaning: str
    default: int


def _of(kind: type[np.generic], unit: str, meaning: str, default: int = 0) -> Any:
    return field(metadata={"kind": np.dtype(kind), "unit": unit, "says": meaning, "empty": default})


def _ns(meaning: str) -> Any:
    return _of(np.int64, "ns", meaning, NEVER)


@dataclass(slots=True)
class _Table:
    """Arrays of one length, made, cut and joined together."""

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """Every column of one entry a row, in order, with dtype, unit and meaning."""
        return _columns(cast(Any, cls))

    @classmethod
    def blank(cls, rows: int) -> Self:
        """`rows` rows of defaults: nothing happened (-1), nothing counted (0)."""
        made = {c.name: np.full(rows, c.default, c.kind) for c in cls.columns()}
        return cls(**made)

    @classmethod
    def of(cls, given: Mapping[str, Any], rows: int | None = None) -> Self:
        """From some columns, cast to their dtypes; the rest blank.

        Raises ValueError for an unknown column or lengths that differ.
        """
        known = {c.name: c for c in cls.columns()}
        if unknown := sorted(set(given) - set(known)):
            raise ValueError(f"{cls.__name__} has no column {unknown[0]!r}; it has {list(known)}")
        if rows is None:
            rows = max((np.size(v) for v in given.values()), default=0)
        table = cls.blank(rows)
        for name, values in given.items():
            array = np.asarray(values)
            if array.ndim and len(array) != rows:
                raise ValueError(f"{cls.__name__}.{name}: {len(array)} values for {rows} rows")
            getattr(table, name)[:] = array
        return table

    @classmethod
    def join(cls, tables: "Sequence[Self]") -> Self:
        """One below the other, in the order given; of none, no rows."""
        if not tables:
            return cls.blank(0)
        joined = {
            c.name: np.concatenate([getattr(t, c.name) for t in tables]) for c in cls.columns()
        }
        return cls(**joined)

    def __len__(self) -> int:
        return len(getattr(self, type(self).columns()[0].name))

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """The rows asked for: a slice, a mask or indices. A slice shares memory."""
        return type(self)(**{c.name: getattr(self, c.name)[rows] for c in type(self).columns()})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name to array, in column order: what a compiled loop or Arrow takes."""
        return {c.name: getattr(self, c.name) for c in type(self).columns()}


@cache
def _columns(table: Any) -> tuple[Column, ...]:
    return tuple(
        Column(f.name, m["kind"], m["unit"], m["says"], m["empty"])
        for f in fields(table)
        if (m := f.metadata)
    )


@dataclass(slots=True)
class Requests(_Table):
    """What users ask for, in order of arrival: workload -> world.

    `prefix` names what the prompt's first `prefix_tokens` tokens are: a system prompt, or, from
    a conversation's second turn on, its `session`, whose earlier turn left them behind (prompt
    and answer). So once a request is served, a cache holds `prefix_tokens` of `prefix`, and
    all of prompt and output of `session` if that is not 0.
    """

    arrival_ns: I64 = _ns("the client begins to ask")
    client: I32 = _of(np.int32, "index", "which client process asks")
    tenant: I16 = _of(np.int16, "index", "who pays")
    route: I16 = _of(np.int16, "index", "gateway route it goes to")
    model: I16 = _of(np.int16, "index", "model asked for")
    lora: I16 = _of(np.int16, "index", "adapter asked for; -1 none", NEVER)
    prompt_tokens: I32 = _of(np.int32, "tokens", "prompt, shared prefix included; at least 1")
    output_tokens: I32 = _of(np.int32, "tokens", "the model would make if let; at least 1")
    max_tokens: I32 = _of(np.int32, "tokens", "most it may make, as the request says")
    prefix: I64 = _of(np.int64, "id", "shared prefix the prompt begins with; 0 none")
    prefix_tokens: I32 = _of(np.int32, "tokens", "length of that prefix; at most the prompt")
    streamed: I8 = _of(np.int8, "0/1", "answer asked for as a stream")
    priority: I8 = _of(np.int8, "rank", "lower is served first, as in vLLM; 0 interactive")
    request_type: I8 = _of(np.int8, "RequestType", "kind of work")
    rag: I8 = _of(np.int8, "0/1", "goes through retrieval first")
    structured: I8 = _of(np.int8, "0/1", "output bound to a grammar or JSON schema")
    session: I64 = _of(np.int64, "id", "conversation or agent run it belongs to; 0 none")


@dataclass(slots=True)
class Attempts(Requests):
    """One try of a request, given when it is over: world -> telemetry.

    Holds its request's own columns too. When token instants were asked for,
    attempt i's are `tokens[token_offset[i]:token_offset[i + 1]]`; else both are empty.
    """

    request: I64 = _of(np.int64, "number", "running number of the request", NEVER)
    attempt: I8 = _of(np.int8, "number", "0 the first try, 1 the first retry, ...")
    hedge: I8 = _of(np.int8, "0/1", "started beside another, not after it")
    zone_client: I16 = _of(np.int16, "index", "zone its client is in", NEVER)
    gateway: I16 = _of(np.int16, "index", "gateway instance that took it", NEVER)
    replica: I32 = _of(np.int32, "index", "engine replica that (decoded) it", NEVER)
    prefill_replica: I32 = _of(np.int32, "index", "replica of a split prefill; -1 none", NEVER)
    cached_tokens: I32 = _of(np.int32, "tokens", "prompt tokens found in the prefix cache")
    output_done: I32 = _of(np.int32, "tokens", "output tokens made")
    outcome: I8 = _of(np.int8, "Outcome", "how it ended")
    http_status: I16 = _of(np.int16, "status", "what the client got; 0 no answer")
    preemptions: I16 = _of(np.int16, "count", "times it lost its KV blocks")
    client_start: I64 = _ns("the client begins this try")
    client_slot: I64 = _ns("a slot of the client's pool is had")
    client_connected: I64 = _ns("connection open")
    gateway_in: I64 = _ns("request at the gateway")
    gateway_authed: I64 = _ns("authentication done")
    guardrail_start: I64 = _ns("policy check begins")
    guardrail_end: I64 = _ns("policy check ends")
    retrieval_start: I64 = _ns("retrieval begins")
    retrieval_end: I64 = _ns("retrieval ends")
    gateway_out: I64 = _ns("the gateway's upstream call begins")
    router_in: I64 = _ns("request at the router")
    router_queued_end: I64 = _ns("leaves the router's own queue")
    router_out: I64 = _ns("the router's upstream call begins")
    engine_in: I64 = _ns("HTTP request at the engine")
    tokenize_start: I64 = _ns("a tokenizer worker takes it")
    tokenize_end: I64 = _ns("tokens made")
    queued: I64 = _ns("into the scheduler's queue")
    kv_load_start: I64 = _ns("load of offloaded KV begins")
    kv_load_end: I64 = _ns("load of offloaded KV ends")
    lora_start: I64 = _ns("load of its adapter begins")
    lora_end: I64 = _ns("load of its adapter ends")
    model_start: I64 = _ns("load of the model begins")
    model_end: I64 = _ns("load of the model ends")
    scheduled: I64 = _ns("first scheduled")
    prefill_end: I64 = _ns("engine computed its first token")
    kv_transfer_start: I64 = _ns("hand-off of KV to decode begins")
    kv_transfer_end: I64 = _ns("hand-off of KV to decode ends")
    engine_first: I64 = _ns("first token leaves the engine")
    engine_last: I64 = _ns("last token leaves the engine")
    engine_end: I64 = _ns("the engine's HTTP answer ends")
    router_first: I64 = _ns("first byte leaves the router")
    router_end: I64 = _ns("last byte leaves the router")
    gateway_first: I64 = _ns("first byte handed to the client")
    gateway_last: I64 = _ns("last byte handed to the client")
    client_first: I64 = _ns("first token at the client")
    client_last: I64 = _ns("last token at the client")
    client_end: I64 = _ns("the client is done with this try")
    aborted: I64 = _ns("the engine is told to stop")
    itl_max_ns: I64 = _ns("longest gap between tokens leaving the engine; -1 under two tokens")
    decode_steps: I32 = _of(np.int32, "count", "engine steps that gave it tokens")
    followed: I8 = _of(np.int8, "0/1", "1: the client's call went on with another try")
    upstream_tries: I8 = _of(np.int8, "count", "calls to replicas for it; the client knows of one")
    upstream_first: I64 = _ns("first of these began; instants from gateway_out on are the last's")
    tokens: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    token_offset: I64 = field(default_factory=lambda: np.empty(0, np.int64))

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """The rows asked for, with their token instants."""
        # Not super(): a slotted dataclass is another class than the one its body saw.
        picked = _Table.take(self, rows)
        if len(self.token_offset):
            chosen = np.arange(len(self))[rows]
            lengths = np.diff(self.token_offset)[chosen]
            picked.token_offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            start = np.repeat(self.token_offset[chosen] - picked.token_offset[:-1], lengths)
            picked.tokens = self.tokens[start + np.arange(picked.token_offset[-1])]
        return picked

    @classmethod
    def join(cls, tables: "Sequence[Self]") -> Self:
        """One below the other, token instants too; ValueError when only some have them."""
        joined = cast(Self, _Table.join.__func__(cls, tables))  # type: ignore[attr-defined]
        filled = [t for t in tables if len(t)]
        has = [bool(len(t.token_offset)) for t in filled]
        if any(has):
            if not all(has):
                raise ValueError(f"token instants in {sum(has)} of {len(has)} tables; want all")
            lengths = np.concatenate([np.diff(t.token_offset) for t in filled])
            joined.token_offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            joined.tokens = np.concatenate([t.tokens for t in filled])
        return joined
