"""What sort of requests a client sends: its route, sharing, sessions, answers."""

from dataclasses import dataclass, fields

import numpy as np

from tailburn.lab.records import RequestType


@dataclass(frozen=True)
class Kind:
    """One sort of client. Shares are of its requests, 0 to 1."""

    name: str
    request_type: RequestType
    route: str
    priority: int = 0
    """Lower is served first; 0 interactive, 1 batch."""
    streamed: float = 1.0
    rag: float = 0.0
    structured: float = 0.0
    lora: float = 0.0
    """Share that asks for an adapter, of `adapters` ones of falling popularity."""
    adapters: int = 0
    system_share: float = 0.2
    """Mean length of a system prompt, in median prompts of its client."""
    templates: int = 4
    """System prompts a tenant has for this kind; the first is the most used."""
    turns: float = 0.0
    """Share of new conversations that get a second turn; 0 has no sessions."""
    later_turns: float = 0.0
    """Share of second and later turns that are followed by another."""
    think_s: float = 0.0
    """Typical time between the turns of one conversation."""


# So 40 % of conversations get a second turn (WildChat: 42 %), the next turn comes after 109 s
# in the median and 470 s at p90 (Mooncake: 114 and 519 s), and of Mooncake's prompts an endless
# cache holds 41 % of the tokens (measured: 37 %).
CHAT = Kind(
    "chat", RequestType.CHAT, "chat", streamed=0.97, structured=0.02, lora=0.05, adapters=12,
    turns=0.46, later_turns=0.78, think_s=280.0, system_share=0.06,
)  # fmt: skip
COMPLETION = Kind(
    "completion", RequestType.COMPLETION, "completions", streamed=0.9, system_share=0.1, templates=8
)
DOCUMENT = Kind(
    "document", RequestType.DOCUMENT, "rag", streamed=0.9, rag=1.0, structured=0.05,
    system_share=0.15,
)  # fmt: skip
AGENT = Kind(
    "agent", RequestType.AGENT, "agents", streamed=0.8, structured=0.6, system_share=0.3,
    templates=3, turns=0.97, later_turns=0.97, think_s=12.0,
)  # fmt: skip
BATCH = Kind(
    "batch", RequestType.BATCH, "batch", priority=1, streamed=0.0, structured=0.3,
    system_share=0.4, templates=2,
)  # fmt: skip
KINDS = (CHAT, COMPLETION, DOCUMENT, AGENT, BATCH)

NUMBERS = tuple(f.name for f in fields(Kind) if f.name not in ("name", "route"))
N_OF = {name: i for i, name in enumerate(NUMBERS)}


def kind_table(kinds: "tuple[Kind, ...]") -> np.ndarray:
    """[kind, number] for compiled code; the columns are NUMBERS, in order."""
    return np.array([[float(getattr(k, name)) for name in NUMBERS] for k in kinds])


def spread(weights: np.ndarray, shares: "dict[Kind, float]") -> np.ndarray:
    """The kind (index into `shares`) of each client, so that shares of traffic come out.

    Largest client first, each to the kind that lacks most; off by at most the
    weight of the smallest clients when the large ones do not exceed a share.
    """
    want = np.array(list(shares.values()), float)
    lack = want / want.sum() * weights.sum()
    kind = np.zeros(len(weights), np.int64)
    for client in np.argsort(-weights, kind="stable"):
        kind[client] = np.argmax(lack)
        lack[kind[client]] -= weights[client]
    return kind
