"""Recordings sent to an OTLP/HTTP address, all times shifted by one constant to now."""

import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from tailburn.app.errors import UserError
from tailburn.app.replay.pace import Pace
from tailburn.app.replay.paths import recordings
from tailburn.app.replay.recording import Recording, RecordingError
from tailburn.app.replay.shift import shifted
from tailburn.collector.accept import Encoding
from tailburn.collector.compression import zstd

TRIES = 8
_MAX_WAIT_S = 5.0
_RETRYABLE = {429, 502, 503, 504}
_MEDIA_TYPES = {
    Encoding.PROTOBUF: "application/x-protobuf",
    Encoding.JSON: "application/json",
}
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
}


@dataclass
class Sent:
    """What became of the bodies sent."""

    bodies: int = 0
    bytes: int = 0  # before compression
    refused: list[str] = field(default_factory=list)  # where it lies, and what was answered


def send(
    paths: Sequence[Path],
    url: str,
    speed: float | None = None,
    token: str | None = None,
    *,
    on_body: Callable[[Recording], None] = lambda recording: None,
    client: httpx.Client | None = None,
) -> Sent:
    """Send every recording under `paths` to the service at `url`, in order.

    Without `speed` as fast as it takes them, else at the recorded pace times `speed`. A body
    refused for good is counted and named, and the rest goes on. Raises RecordingError, and
    UserError when the service can't be reached or stays busy.
    """
    everything = list(recordings(paths))
    headers = {"authorization": f"Bearer {token}"} if token else {}
    sent = Sent()
    with client or httpx.Client(timeout=60) as http:
        pace = Pace(speed)
        for recording in _to_now(everything, speed, time.time_ns()):
            pace.wait_for(recording.received_ns)
            answer = _post(http, url.rstrip("/"), recording, headers)
            if answer.is_success:
                sent.bodies += 1
                sent.bytes += len(recording.body)
            else:
                sent.refused.append(f"{recording.place}: {answer.status_code} {_message(answer)}")
            on_body(recording)
    return sent


def _to_now(
    everything: Sequence[Recording], speed: float | None, now_ns: int
) -> Iterator[Recording]:
    """The recordings moved so that none lies in the future when its turn comes.

    The last body is moved to the moment it will be sent; with a pace slower than recorded
    (`speed` below 1), the first is.
    """
    if not everything:
        return
    first_ns, last_ns = everything[0].received_ns, everything[-1].received_ns
    takes_ns = 0 if speed is None else round((last_ns - first_ns) / max(speed, 1.0))
    by_ns = now_ns + takes_ns - last_ns
    for recording in everything:
        try:
            body = shifted(recording.body, recording.signal, recording.encoding, by_ns)
        except (DecodeError, ValueError) as error:
            raise RecordingError(f"{recording.place}: not OTLP: {error}") from None
        yield replace(recording, body=body, received_ns=recording.received_ns + by_ns)


def _post(
    http: httpx.Client, url: str, recording: Recording, headers: dict[str, str]
) -> httpx.Response:
    """One body, sent again while the service says that it is busy."""
    headers = {**headers, "content-type": _MEDIA_TYPES[recording.encoding]}
    body = recording.body
    if recording.compression:
        headers["content-encoding"] = recording.compression
        body = _COMPRESS[recording.compression](body)
    address = f"{url}/v1/{recording.signal}"
    for _ in range(TRIES):
        try:
            answer = http.post(address, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise UserError(f"{address}: {error}") from None
        if answer.status_code not in _RETRYABLE:
            return answer
        time.sleep(_wait_s(answer))
    raise UserError(f"{address}: still {answer.status_code} after {TRIES} tries")


def _wait_s(answer: httpx.Response) -> float:
    told = answer.headers.get("retry-after", "")
    return min(float(told), _MAX_WAIT_S) if told.isdigit() else 1.0


def _message(answer: httpx.Response) -> str:
    """What a refusal says: the message of a google.rpc.Status in either encoding."""
    kind = answer.headers.get("content-type", "")
    try:
        if "json" in kind:
            return str(json.loads(answer.content)["message"])
        if "protobuf" in kind:
            return str(Status.FromString(answer.content).message)
    except (ValueError, KeyError, TypeError, DecodeError):
        return "with an answer that is no google.rpc.Status"
    return answer.reason_phrase
