"""Files of SLOs for tests."""

from typing import Final

CHAT: Final = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat, labels: {team: assistants}}
spec:
  select: {pool: interactive, request_type: chat}
  vantage: gateway
  window: 30d
  clocks:
    ttft: {target: {p95: 400ms}, acceptable: {p50: 300ms, p95: 500ms, p99: 1s}, critical: {p95: 3s}}
    tpot: {target: {p95: 40ms}, acceptable: {p95: 60ms}, critical: {p50: 150ms}}
  availability: 99.9%
  goodput: 95%
  consistency: {p99_over_p50: 3}
  regression: {ratio: 1.5}
  scale_out: {at: 0.8, for: 5m}
  exclude: {cancelled_by_client: before_threshold}
"""


def slo_text(spec: str, name: str = "chat") -> str:
    """A document whose spec holds these lines."""
    lines = "".join(f"  {line}\n" for line in spec.splitlines())
    return f"apiVersion: tailburn/v1\nkind: ServingSLO\nmetadata: {{name: {name}}}\nspec:\n{lines}"


SPEC_LINE: Final = 5
"""The line of a `slo_text` on which its spec begins."""
