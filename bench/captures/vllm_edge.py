"""vLLM 0.32.0 asked directly, without a client span: contexts, n > 1, other APIs, refusals."""

from collections.abc import Mapping
from pathlib import Path

from bench.captures.case import Case, one_try
from bench.captures.log import Sent, json_lines
from bench.captures.vllm import engine_clocks, is_engine


def _read(path: Path, _runs: tuple[str, ...]) -> list[Sent]:
    """The requests of the edge log whose engine span carries the caller's trace id.

    Left out: refused ones and those whose caller did not sample, which leave no span, aborted
    ones, which leave none either, and those without a usable context, whose trace id is the
    engine's own.
    """
    return [
        _sent(raw)
        for raw in json_lines(path)
        if raw["trace_id"] and raw.get("usage") and raw["flags"] == "01"
    ]


def _sent(raw: Mapping[str, object]) -> Sent:
    usage, sent, end = raw["usage"], raw["t_send"], raw["t_end"]
    assert isinstance(usage, dict) and isinstance(sent, int) and isinstance(end, int)
    return Sent(
        key=f"edge/{raw['case']}",
        phase="edge",
        trace_id=str(raw["trace_id"]),
        span_id=str(raw["parent_span_id"]),
        sent_ns=sent,
        first_ns=None,
        end_ns=end,
        streamed=False,
        outcome="ok",
        prompt_tokens=usage.get("prompt_tokens", usage.get("input_tokens")),
        output_tokens=usage.get("completion_tokens", usage.get("output_tokens")),
        request_id=None,
        tries=None,
        max_gap_ns=None,
    )


RUN3 = Case(
    name="vllm-run3",
    stack="vLLM, asked directly",
    version="vLLM 0.32.0",
    spans="vllm-0.32.0/spans/run3-http",
    log="vllm-0.32.0/edge_requests.jsonl",
    runs=(),
    is_gateway=lambda span: False,
    is_engine=is_engine,
    tries=one_try,
    wait=None,
    client_spans=False,
    own_outcome=False,
    read=_read,
    more=engine_clocks,
)
