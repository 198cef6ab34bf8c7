"""What recognition says of each span: the columns between rules and stitcher."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.spans import I8, I32, I64, U64


class Role(IntEnum):
    """What a span is to the stitcher."""

    UNRECOGNISED = 0
    NOISE = 1  # recognised and no part of a request: probes, scrapes
    CALL = 2  # an LLM call as its caller sees it: anchors a request
    SERVER = 3  # a server hop's whole stay; anchors a request where nothing is outside it
    EDGE = 4  # an outgoing call: what its server does not cover is the edge between two hops
    PART = 5  # a piece inside a hop, with a hop of its own
    INNER = 6  # a piece inside a hop that only confirms it (middleware, second SERVER span)
    TOKEN = 7  # the sending of one token: folded into its parent's token times
    LOAD = 8  # model or adapter loading outside any request


class EndIs(IntEnum):
    """What a span's end means."""

    END = 0  # the hop's last byte
    HEADERS = 1  # response headers: the hop goes on after it
    LOOSE = 2  # known to come late: only trusted where nothing outside ends earlier
    CHILD = 3  # a part that is over where its first child begins; unknown without one


HOP_BY_POSITION = -1
"""`hop` of a SERVER or EDGE span whose place (gateway, router, engine) the trace decides."""


@dataclass
class HopColumns:
    """One entry per span of a `SpanBatch`. Times absolute ns (0: unknown), durations ns (-1)."""

    class_id: I32  # into `Classifier.classes`
    role: I8
    hop: I8  # index in engine.names.HOPS; HOP_BY_POSITION
    end_is: I8
    first_token_ns: I64
    last_token_ns: I64
    queue_ns: I64
    prefill_ns: I64
    decode_ns: I64
    kv_transfer_ns: I64
    kv_load_ns: I64
    e2e_ns: I64  # the span's own idea of its length, where it tells one
    prompt_tokens: I64
    cached_tokens: I64
    output_tokens: I64
    max_output_tokens: I64
    streamed: I8  # -1 unknown, 0, 1
    outcome: I8  # index in engine.names.OUTCOMES
    http_status: I32  # 0 unknown
    attempt: I32  # -1 unknown, counted from 0
    own_id: U64  # hash of the id by which this hop names the request; 0 none
    peer_id: U64  # hash of the id by which the next hop in names it, or a second id; 0 none
    model: I32  # dictionary code; 0 unknown
    route: I32
    replica: I32
    lora: I32
    client: I32
    pool: I32
    request_type: I32
    priority: I32
    kv_tier: I32
    weights_tier: I32
    host: I32  # dictionary code of the host whose clock this span was stamped with; 0 unknown
    node: I32
    gpu: I32
    zone: I32
    service: I32  # dictionary code of service.name


INTEGER_COLUMNS: tuple[str, ...] = tuple(HopColumns.__dataclass_fields__)


def empty(n: int) -> HopColumns:
    """Columns for `n` spans of which nothing is known yet."""
    unknown = {"queue_ns", "prefill_ns", "decode_ns", "kv_transfer_ns", "kv_load_ns", "e2e_ns"}
    unknown |= {"prompt_tokens", "cached_tokens", "output_tokens", "max_output_tokens"}
    unknown |= {"streamed", "attempt"}
    types: dict[str, type[np.generic]] = {
        **dict.fromkeys(("role", "hop", "end_is", "streamed", "outcome"), np.int8),
        **dict.fromkeys(("own_id", "peer_id"), np.uint64),
    }
    wide = ("_ns", "_tokens")

    def column(name: str) -> NDArray[Any]:
        dtype = types.get(name, np.int64 if name.endswith(wide) else np.int32)
        return np.full(n, -1 if name in unknown else 0, dtype)

    return HopColumns(**{name: column(name) for name in INTEGER_COLUMNS})
