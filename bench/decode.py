"""How fast bodies become columns, beside protobuf's decoder and Python loops in the same run.

python -m bench.decode [--bodies 60] [--repeats 5]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from bench.bodies import START_NS, bodies
from bench.figures import Figure, show
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.wanted import Want, Wanted

WANTED = [
    *(
        Wanted(key, Want.TEXT)
        for key in (
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.operation.name",
            "gen_ai.response.finish_reasons",
            "http.request.method",
            "http.route",
            "url.path",
            "server.address",
            "llm.pool",
            "llm.replica",
        )
    ),
    *(
        Wanted(key, Want.NUMBER)
        for key in (
            "gen_ai.latency.time_to_first_token",
            "gen_ai.latency.e2e",
            "gen_ai.latency.time_in_queue",
            "gen_ai.latency.time_in_model_prefill",
            "gen_ai.latency.time_in_model_decode",
            "gen_ai.usage.prompt_tokens",
            "gen_ai.usage.completion_tokens",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.request.max_tokens",
            "http.response.status_code",
        )
    ),
    Wanted("gen_ai.request.id", Want.ID),
    Wanted("gen_ai.response.id", Want.ID),
]


def scanner(data: list[bytes]) -> Callable[[], int]:
    """This project's decoder: bytes to columns, taken once for all bodies."""
    decoder = Decoder(WANTED)

    def run() -> int:
        for body in data:
            decoder.add(bytearray(body), received_ns=START_NS, tenant="default")
        return len(decoder.take())

    return run


def _plain(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(v) for v in value.array_value.values]
    return getattr(value, kind) if kind else None


def loops(data: list[bytes]) -> Callable[[], int]:
    """The baseline: protobuf's decoder, columns as lists, other attributes as JSON."""
    wanted = {w.key: i for i, w in enumerate(WANTED)}

    def run() -> int:
        rows: list[tuple[object, ...]] = []
        values: list[list[tuple[int, object]]] = [[] for _ in wanted]
        for body in data:
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = {kv.key: _plain(kv.value) for kv in group.resource.attributes}
                for scoped in group.scope_spans:
                    for span in scoped.spans:
                        rest = {}
                        for kv in span.attributes:
                            position = wanted.get(kv.key)
                            if position is None:
                                rest[kv.key] = _plain(kv.value)
                            else:
                                values[position].append((len(rows), _plain(kv.value)))
                        rows.append(
                            (
                                span.trace_id,
                                span.span_id,
                                span.parent_span_id,
                                span.name,
                                span.kind,
                                span.start_time_unix_nano,
                                span.end_time_unix_nano,
                                span.status.code,
                                resource.get("service.name"),
                                scoped.scope.name,
                                json.dumps(rest),
                            )
                        )
        return len(rows)

    return run


def rates(run: Callable[[], int], repeats: int) -> list[float]:
    """Spans per second of this process's CPU, once for each repeat."""
    run()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        spans = run()
        found.append(spans / (time.process_time() - began))
    return found


def figures(count: int = 60, repeats: int = 5) -> Iterator[Figure]:
    """Of bodies as a collector sends them, and of those of a sender that does not batch."""
    for spans, bodies_ in ((512, count), (8, 10 * count)):
        data = bodies(bodies_, spans)
        slow = statistics.median(rates(loops(data[: max(1, bodies_ // 10)]), 3))
        yield Figure(
            f"decode, {spans} spans a body", rates(scanner(data), repeats), "spans/cpu-s", slow,
            "protobuf's decoder and Python loops",
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bodies", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    show(list(figures(arguments.bodies, arguments.repeats)))


if __name__ == "__main__":
    main()
