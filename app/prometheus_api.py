"""A live Prometheus, asked over its HTTP API."""

import math
import re
from collections.abc import Sequence
from typing import Any

import httpx

from tailburn.app.errors import UserError
from tailburn.rules.lint.known import Sample

_TIMEOUT_S = 30.0
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")


class PrometheusApi:
    """Answers of one Prometheus, or of what speaks like it. Each question is asked once."""

    def __init__(self, url: str, client: httpx.Client | None = None) -> None:
        self._url = url.rstrip("/")
        self._client = client or httpx.Client(timeout=_TIMEOUT_S)
        self._answers: dict[str, tuple[Sample, ...]] = {}
        self.version = str(self._status("buildinfo").get("version") or "0")

    @property
    def retention_s(self) -> float | None:
        """From its runtime information: `15d`, or `15d or 10GiB`."""
        text = str(self._status("runtimeinfo").get("storageRetention") or "")
        return duration_s(text.split(" or ")[0])

    def query(self, expr: str) -> Sequence[Sample]:
        """The series of an instant query, without those that are not a number."""
        if expr not in self._answers:
            answer = self._get("/api/v1/query", query=expr)
            samples = (_sample(row) for row in answer.get("result", ()))
            self._answers[expr] = tuple(s for s in samples if not math.isnan(s.value))
        return self._answers[expr]

    def _status(self, what: str) -> dict[str, Any]:
        """Nothing where it is not there: not all that speak like Prometheus tell of themselves."""
        return self._get(f"/api/v1/status/{what}", may_lack=True)

    def _get(self, path: str, *, may_lack: bool = False, **parameters: str) -> dict[str, Any]:
        try:
            response = self._client.get(self._url + path, params=parameters)
            if may_lack and response.status_code == httpx.codes.NOT_FOUND:
                return {}
            body = response.json()
        except (httpx.HTTPError, httpx.InvalidURL) as wrong:
            raise UserError(f"{self._url}: no answer from Prometheus: {wrong}") from wrong
        except ValueError:
            raise UserError(
                f"{self._url}{path}: HTTP {response.status_code} without JSON; "
                "want the address of a Prometheus, such as http://127.0.0.1:9090"
            ) from None
        if not isinstance(body, dict) or body.get("status") != "success":
            said = body.get("error") if isinstance(body, dict) else body
            raise UserError(f"{self._url}{path}: {said or body}")
        data = body.get("data")
        return data if isinstance(data, dict) else {}


def _sample(row: Any) -> Sample:
    return Sample(row["metric"], float(row["value"][1]))


def duration_s(text: str) -> float | None:
    """A duration as Prometheus writes it, `1d12h`, in seconds; None for any other text."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * _UNITS_S[unit] for number, unit in parts)
