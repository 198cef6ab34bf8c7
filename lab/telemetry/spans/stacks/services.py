"""What a gateway asks on the way: policy checks and a vector store."""

from typing import Any

from tailburn.lab.telemetry.spans.flow import Flow, Rows
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.template import INTERNAL, Kind

GUARDRAIL = Kind(
    "openinference.instrumentation.guardrails",
    "Guard.check",
    INTERNAL,
    (("openinference.span.kind", "GUARDRAIL"),),
    scope_version="0.1.12",
)
CHROMA = Kind(
    "opentelemetry.instrumentation.chromadb",
    "chroma.query",
    INTERNAL,
    (
        ("db.system", "chroma"),
        ("db.operation", "query"),
        ("db.chroma.query.embeddings_count", 1),
        ("db.chroma.query.n_results", 3),
    ),
    scope_version="0.62.4",
)


def guardrail(flow: Flow, rows: Rows, process: Any, parent: U64) -> None:
    """A policy check, where one was made."""
    a = flow.a
    spans = flow.ids(rows, "guardrail")
    begun, ended = a.guardrail_start[rows], a.guardrail_end[rows]
    flow.add(GUARDRAIL, rows, process, begun, ended, spans, parent=parent, where=ended >= 0)


def retrieval(flow: Flow, rows: Rows, process: Any, parent: U64) -> None:
    """A query of the vector store, where there was one."""
    a = flow.a
    spans = flow.ids(rows, "retrieval")
    begun, ended = a.retrieval_start[rows], a.retrieval_end[rows]
    flow.add(CHROMA, rows, process, begun, ended, spans, parent=parent, where=ended >= 0)
