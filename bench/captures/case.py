"""One capture as a case: where its truth lies, and which of its spans are which hop."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.captures.checks import Check
from bench.captures.log import Sent, read_log
from bench.captures.matching import Matching
from bench.captures.recorded import Group, Span

SpanTest = Callable[[Span], bool]

ENGINE = (
    "engine",
    "tokenizer",
    "detokenizer",
    "queue",
    "prefill",
    "kv_transfer",
    "kv_load",
    "model_load",
    "lora_load",
)
CLIENT = ("client", "client>gateway")
GATEWAY = ("gateway", "guardrail", "gateway>router", "router", "retry")
TO_ENGINE = ("gateway>engine", "router>engine")


@dataclass(frozen=True)
class Wait:
    """Where the requests of one phase waited for their first token."""

    phase: str
    parts: Mapping[str, tuple[str, ...]]  # name of a part: the hops that may hold it
    owner: tuple[str, ...]  # parts, of which one held the most at the median
    truth: Callable[[Group, Sent], Mapping[str, int] | None]  # ns by part; None: not known


def no_more(_matching: Matching, _captures: Path) -> Iterator[Check]:
    """Nothing beyond the checks that every capture has to pass."""
    return iter(())


@dataclass(frozen=True)
class Case:
    """A capture and what is special about it. Paths are below the folder of captures."""

    name: str
    stack: str
    version: str
    spans: str
    log: str
    runs: tuple[str, ...]
    is_gateway: SpanTest
    is_engine: SpanTest
    tries: Callable[[Group], frozenset[int]]  # numbers of attempts that are right
    wait: Wait | None
    ttft_tolerance_s: float = 0.002
    ttft_share: float = 0.99
    ttft_known: Callable[[Group, Sent], bool] = field(default=lambda group, sent: True)
    e2e_tolerance_s: float = 0.002
    client_spans: bool = True  # the client sent spans of its own
    own_outcome: bool = True  # and they say how its request ended
    read: Callable[[Path, tuple[str, ...]], list[Sent]] = read_log
    more: Callable[[Matching, Path], Iterator[Check]] = no_more

    def spans_folder(self, captures: Path) -> Path:
        return captures / self.spans

    def log_file(self, captures: Path) -> Path:
        return captures / self.log

    def serves(self, span: Span) -> bool:
        """Whether the span is a server's stay of an LLM request."""
        return self.is_gateway(span) or self.is_engine(span)


def one_try(_group: Group) -> frozenset[int]:
    """A chain that never tries twice."""
    return frozenset({1})
