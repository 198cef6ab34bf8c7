"""What it costs to read the metrics of engines: an answer made rows, against the client library.

python -m bench.signals
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bench.figures import Figure, show
from bench.store import measure
from tailburn.collector.packing import packed
from tailburn.collector.signals.exposition import scan
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.mapper import Mapper, signals_table
from tailburn.collector.signals.targets import target_of

SCRAPES = Path(__file__).parents[1] / "tests" / "collector" / "signals" / "scrapes"
ANSWERS = 50
SERIES = 10_000


def figures() -> Iterator[Figure]:
    """A real vLLM's answer to rows in the log's form; the same text parsed; 10,000 series."""
    body = gzip.decompress((SCRAPES / "vllm-0.32.0.prom.gz").read_bytes())
    catalogue, target = load_catalogue(), target_of("engine:8000", {}, "", "default")
    mapper = Mapper(catalogue, target)
    samples = ANSWERS * scan(body, catalogue.uses, catalogue.families).lines

    def read(text: bytes) -> None:
        told = mapper.map(scan(text, catalogue.uses, catalogue.families))
        packed(signals_table(told, catalogue, target, 0))

    def many() -> None:
        for _ in range(ANSWERS):
            read(body)

    def parsed() -> None:
        for _ in range(ANSWERS):
            list(text_string_to_metric_families(body.decode()))

    ours, theirs = measure(many), measure(parsed, repeats=2)
    yield Figure(
        "vLLM's metrics to rows", [samples / ours.cpu_s], "samples/cpu-s",
        samples / theirs.cpu_s, "prometheus_client's parser, without rows",
    )  # fmt: skip
    lines = (f'vllm:num_requests_waiting{{model_name="m{i}"}} {i}\n' for i in range(SERIES))
    large = "".join(lines).encode()
    yield Figure(
        f"an answer of {SERIES:,} series, all kept",
        [measure(lambda: read(large)).cpu_s * 1e3],
        "ms",
    )


if __name__ == "__main__":
    show(list(figures()))
