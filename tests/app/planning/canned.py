"""A Prometheus that answers as told: the few questions that a backtest asks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.app.targets import Handler, listening

_QUERY = re.compile(
    r"(?:(?P<added>count|sum)(?: by \((?P<by>.*?)\))? \(?|count\()?"
    r"(?:last_over_time\()?(?P<name>\w+)(?:\{(?P<matchers>[^}]*)\})?(?:\[(?P<window>\d+)s\])?\)*"
)
_MATCHER = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')
Labels = Mapping[str, str]


@dataclass
class Canned:
    """Series by minute since the epoch; None where nothing was scraped."""

    series: list[tuple[Labels, Mapping[int, float]]] = field(default_factory=list)
    most_points: int = 11_000
    refusal: tuple[int, bytes] | None = None  # an answer to everything
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def add(self, begin: int, values: Sequence[float | None], name: str, **labels: str) -> None:
        told = {begin + i: value for i, value in enumerate(values) if value is not None}
        self.series.append(({"__name__": name, **labels}, told))

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, bytes]:
        if self.refusal is not None:
            return self.refusal
        if path.startswith("/api/v1/label/slo/values"):
            names = sorted({labels["slo"] for labels, _ in self.series if "slo" in labels})
            return _told(names)
        self.asked.append(form)
        begin_s, end_s, step_s = (int(form[name]) for name in ("start", "end", "step"))
        if (end_s - begin_s) // step_s + 1 > self.most_points:
            error = {"status": "error", "error": "query processing would load too many samples"}
            return 422, json.dumps(error).encode()
        return _told(self._matrix(form["query"], range(begin_s, end_s + 1, step_s)))

    def _matrix(self, query: str, times: range) -> dict[str, Any]:
        asked = _QUERY.fullmatch(query)
        assert asked is not None, query
        window = int(asked["window"] or 300) // 60
        found: dict[tuple[tuple[str, str], ...], dict[int, float]] = {}
        adds, by = query.startswith(("count", "sum")), (asked["by"] or "").split(", ")
        for labels, values in self.series:
            if labels["__name__"] != asked["name"] or not _fits(labels, asked["matchers"] or ""):
                continue
            kept = {n: v for n, v in labels.items() if n in by} if adds else labels
            own = found.setdefault(tuple(sorted(kept.items())), {})
            for at_s in times:
                recent = (values.get(at_s // 60 - ago) for ago in range(window))
                value = next((v for v in recent if v is not None), None)
                if value is not None:
                    own[at_s] = own.get(at_s, 0) + value if adds else value
        result = [
            {"metric": dict(labels), "values": [[at, str(v)] for at, v in own.items()]}
            for labels, own in found.items()
            if own
        ]
        return {"resultType": "matrix", "result": result}


def _fits(labels: Labels, matchers: str) -> bool:
    return all(
        labels.get(name) == value if how == "=" else re.fullmatch(value, labels.get(name, ""))
        for name, how, value in _MATCHER.findall(matchers)
    )


def _told(data: object) -> tuple[int, bytes]:
    return 200, json.dumps({"status": "success", "data": data}).encode()


@contextmanager
def serving(canned: Canned) -> Iterator[str]:
    """Its address."""

    class Answering(Handler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: dict[str, str]) -> None:
            canned.headers.append({n.lower(): v for n, v in self.headers.items()})
            status, body = canned.answer(self.path, form)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked has heard enough
                self.wfile.write(body)

    with listening(Answering) as address:
        yield f"http://{address}"
