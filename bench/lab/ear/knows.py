"""What the spans of each chain can tell, and how exactly; the rest must be null.

Quirks are those of the stacks as they were seen running: spans that end a little after the
last byte, first-token events that come early, headers instead of tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from bench.lab.ear.chains import NONE, Chain
from bench.lab.ear.truth import BACK, Truth

Row = Mapping[str, Any]

EARLY_NS: Final = 60 * 10**9
"""Rows of a chain may begin this early, by a clock that is behind."""

OUTSIDE: Final = ("client", "client>gateway")
MIDDLE: Final = (
    "gateway", "guardrail", "retrieval", "gateway>router", "router", "router>engine",
    "gateway>engine", "client>engine",
)  # fmt: skip
ENGINE: Final = (
    "engine", "tokenizer", "queue", "prefill", "decode", "kv_transfer", "kv_load", "lora_load",
    "detokenizer",
)  # fmt: skip


@dataclass(frozen=True)
class Within:
    """How early and how late a figure may be, in s."""

    early_s: float
    late_s: float
    or_null: bool = False


@dataclass(frozen=True)
class Group:
    """Hops whose sum is known. `at_most`: it may be less, for want of telling."""

    truth: tuple[str, ...]
    row: tuple[str, ...]
    within_s: float = 1e-3
    at_most: bool = False


_EXACT: Final = Within(1e-6, 1e-6)
_MS: Final = Within(1e-6, 1e-3)
_FIRST_AT_CLIENT: Final = {"app": _EXACT, "openinference": Within(0.0521, 1e-6)}
_FIRST_AT_GATEWAY: Final = {
    "fastapi": Within(1e-6, 1e-4),
    "envoy-ai-gateway": _EXACT,
    "dynamo": Within(2e-5, 1e-6),
}
_BEHIND_LITELLM: Final = Within(0.0254, 1e-6, or_null=True)
"""The headers, which come with the first chunk, are parsed before it. With the last: no stream."""
_ANY: Final = Within(inf, inf, or_null=True)
_LOST_TWIN: Final = Within(1e-3, 1e-3)
"""Of LiteLLM's two spans for one stay either may be lost; the inner is 0.8 ms shorter."""
_TELL_FIRST: Final = ("vllm", "trtllm", "sglang", "triton", "dynamo-vllm")
_TELL_QUEUE: Final = _TELL_FIRST
_TELL_PREFILL: Final = ("vllm", "sglang", "dynamo-vllm")
_TELL_TRANSFER: Final = ("trtllm", "sglang")
_CLOCKS: Final = ("ttft", "e2e", "tpot")


@dataclass(frozen=True)
class Knows:
    """What can be known of a chain's requests."""

    chain: Chain
    cut: bool
    """Router and engine lie in traces that no id leads to from the client of every try."""
    apart: bool
    """Not of any try: their rows stand beside the client's."""
    hedges: bool

    @property
    def client(self) -> str:
        return self.chain.client

    @property
    def clocks(self) -> tuple[str, ...]:
        vantages = ("client", "gateway", "engine")
        return (*(f"{c}_{v}_s" for c in _CLOCKS for v in vantages), "queue_s")

    def told(self, truth: Truth) -> bool:
        """Whether anything of the last try was told that makes a row."""
        return self.client != NONE or truth.values["gateway_in"] >= 0

    def rootless(self, truth: Truth) -> bool:
        """openai-v2 may never end the span of a call whose user left: tries without a root."""
        return self.client == "openai" and truth.outcome == "cancelled"

    def halved(self, name: str) -> bool:
        """Of a split request one engine's span may be lost: the other's looks like the whole."""
        inside = ("queue", "engine", "prefill", "kv_transfer", "gateway and router")
        return self.chain.split and any(part in name for part in inside)

    def outcomes(self, truth: Truth) -> tuple[str, ...]:
        """What a row may say."""
        if truth.outcome == "cancelled":
            return ("cancelled", "unknown", "error")
        if self.client == NONE:
            return (truth.outcome, "unknown", "cancelled")
        return (truth.outcome,)

    def truth(self, column: str, truth: Truth) -> float | None:
        """What was true of a clock: where no gateway tells, the router is the gateway."""
        if self.chain.gateway == NONE and self.chain.router != NONE:
            column = column.replace("gateway", "router")
        return truth.clocks[column]

    def exactness(self, column: str, truth: Truth, doubtful: Row | None) -> Within | None:
        """None: must be null. `doubtful`: the row, where some spans were lost."""
        exact = self._exactness(column, truth)
        if doubtful is None or "gateway" not in column:
            return exact
        if column == "e2e_gateway_s":
            return _LOST_TWIN if self.chain.gateway == "litellm" else exact
        if doubtful["streamed"] is None and self.chain.gateway == "dynamo":
            return _ANY  # only the client tells whether it streamed: its first byte, if it did
        if exact is None or not self._misses_messages(doubtful):
            return exact
        late, early = (inf, 0.0) if column == "ttft_gateway_s" else (0.0, inf)
        return Within(exact.early_s + early, exact.late_s + late)

    def until_first_message(self, group: str, row: Row) -> bool:
        """Whether a group of hops is told up to the first message that came, not the first sent."""
        outermost = row["ttft_client_s"] is None and row["ttft_gateway_s"] is not None
        return group == "gateway and router" and outermost and self._misses_messages(row)

    def _misses_messages(self, row: Row) -> bool:
        """Whether a row says that a gateway's messages didn't all come: fewer than its tokens."""
        tokens = row["output_tokens"]
        messages = bool(self.chain.settings.get("token_spans"))
        return messages and (tokens is None or row["token_sends"] <= tokens)

    def _exactness(self, column: str, truth: Truth) -> Within | None:
        if column == "queue_s":
            told = self.chain.engine in _TELL_QUEUE and not self.apart
            return Within(1e-6, 5e-5) if told else None  # Triton's begins with its model's span
        clock, vantage, _ = column.split("_")
        if clock == "e2e":
            return self._e2e(vantage)
        first = self._first(vantage, truth)
        if clock == "ttft" or first is None or truth.values["output_done"] < 2:
            return first if clock == "ttft" else None
        gaps = truth.values["output_done"] - 1
        # The last token at a vantage is its last byte: what ends a stream comes after it.
        return Within(1e-6 + 2e-2 / gaps, 1e-6 + (first.early_s + 2e-2) / gaps)

    def _e2e(self, vantage: str) -> Within | None:
        if vantage == "client":
            return None if self.client == NONE else _EXACT
        if vantage == "gateway":
            nobody = self.chain.gateway == NONE and self.chain.router == NONE
            return None if nobody else _MS
        if self.apart or self.chain.engine == NONE:
            return None
        return Within(1e-6, 5e-4)

    def _first(self, vantage: str, truth: Truth) -> Within | None:
        chain = self.chain
        if vantage == "engine":
            return _EXACT if chain.engine in _TELL_FIRST and not self.apart else None
        if not truth.streamed:
            return None
        if vantage == "gateway":
            if chain.gateway == "fastapi" and not chain.settings.get("token_spans"):
                return None
            return _FIRST_AT_GATEWAY.get(chain.gateway)
        if self.client == "openai" and chain.gateway == "litellm":
            return _BEHIND_LITELLM
        return _FIRST_AT_CLIENT.get(self.client)

    @property
    def groups(self) -> tuple[tuple[str, Group], ...]:
        """Sums of hops to be compared, and hops that must hold nothing."""
        chain = self.chain
        engine = chain.engine
        told = {
            "queue": engine in _TELL_QUEUE,
            "prefill": engine in _TELL_PREFILL,
            "kv_transfer": engine in _TELL_TRANSFER,
        }
        found = []
        for hop, known in told.items():
            if known and not self.apart:
                found.append((hop, Group((hop,), (hop,), 1.5e-3)))
            else:
                found.append((f"{hop} (not told)", Group((), (hop,), 1e-6)))
        for hop in ("guardrail", "retrieval"):
            if chain.gateway != NONE:
                found.append((hop, Group((hop,), (hop,), 1e-3)))
        inside, within = (*MIDDLE, BACK), (*MIDDLE, *OUTSIDE)
        if self.apart:
            found.append(("the engine (not told)", Group((), ENGINE, 1e-6)))
            found.append(("all else", Group((*OUTSIDE, *inside), within, 1e-3, at_most=True)))
            return tuple(found)
        first_token = self._first_of_streams()
        if chain.split and engine == "vllm":  # the router has it between the two
            if first_token:
                found.append(("gateway to engine", Group((*inside, *ENGINE), (*MIDDLE, *ENGINE))))
        else:
            found.append(("engine", Group(ENGINE, ENGINE, 1.5e-3)))
            if first_token:
                found.append(("gateway and router", Group(inside, MIDDLE, 2.5e-3)))
        if self.client == "app":
            if first_token:
                found.append(("client and its edge", Group(OUTSIDE, OUTSIDE)))
            elif not (chain.split and engine == "vllm"):
                found.append(("all before the engine", Group((*OUTSIDE, *inside), within, 2.5e-3)))
        return tuple(found)

    def _first_of_streams(self) -> bool:
        chain = self.chain
        if chain.gateway == "fastapi":
            return bool(chain.settings.get("token_spans"))
        return chain.gateway in _FIRST_AT_GATEWAY


def knows(chain: Chain) -> Knows:
    """What the spans of a chain can tell."""
    # Traces whose flags are 03 are cut there, and no id of a failed try leads further.
    flagged = chain.settings.get("trace_flags", 3) == 3
    stacks = (chain.gateway, chain.router)
    cut = flagged and bool({"dynamo", "vllm-router"} & set(stacks))
    cut = cut or not chain.settings.get("litellm_forwards", True)
    apart = chain.router == "sglang-router"
    # What the loser of a race did is known from the gateway's stay alone.
    return Knows(chain, cut or apart, apart, NONE not in (chain.client, chain.gateway))
