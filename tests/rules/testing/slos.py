"""SLOs of every kind, small enough to be tested in seconds."""

from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.parse import parse

_HEAD: Final = "apiVersion: tailburn/v1\nkind: ServingSLO\n"

CHAT: Final = """\
metadata: {name: chat, labels: {team: assistants}}
spec:
  select: {pool: interactive}
  by: [model]
  vantage: gateway
  window: 30d
  clocks:
    ttft: {acceptable: {p95: 500ms, p99: 1s}, critical: {p50: 1s}}
  availability: 99.9%
  goodput: 95%
  regression: {ratio: 1.5}
  scale_out: {at: 0.8, for: 5m}
"""
BATCH: Final = """\
metadata: {name: nightly}
spec:
  select: {pool: batch}
  vantage: gateway
  calendar: month
  completion: {within: 2h, objective: 99%}
  consistency: {p99_over_p50: 3}
"""
SMALL: Final = """\
metadata: {name: small}
spec: {vantage: gateway, window: 30d, availability: 99.9%}
"""
CAPPED: Final = """\
metadata: {name: capped}
spec: {vantage: gateway, window: 7d, availability: 80%}
"""
QUERIES: Final = """\
metadata: {name: web}
spec:
  vantage: gateway
  window: 30d
  availability: 99.9%
  source:
    queries:
      bad: sum(rate(http_requests_total{job="web",code=~"5..|429"}[{{.window}}]))
      total: sum(rate(http_requests_total{job="web"}[{{.window}}]))
"""
_ENGINE: Final = """\
metadata: {name: ENGINE}
spec:
  by: [model]
  vantage: VANTAGE
  window: 7d
  availability: 99.9%
  clocks: {ttft: {acceptable: {p95: 500ms}}}
  source: {engine: ENGINE, match: {job: serving}}
"""
ENGINES: Final = {
    engine: _ENGINE.replace("ENGINE", engine).replace(
        "VANTAGE", "gateway" if engine == "dynamo" else "engine"
    )
    for engine in ("vllm", "sglang", "trtllm", "triton", "dynamo")
}
EVERY: Final = {
    "chat": CHAT,
    "batch": BATCH,
    "capped": CAPPED,
    "queries": QUERIES,
    **ENGINES,
}


def slo(text: str) -> Slo:
    """The one SLO of a text."""
    parsed = parse([("slo.yaml", _HEAD + text)])
    assert not parsed.problems, [str(problem) for problem in parsed.problems]
    (found,) = parsed.slos
    return found
