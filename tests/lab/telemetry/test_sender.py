"""The sender: what it says with each body, and what it does when a target refuses."""

import httpx
import pytest

from tailburn.lab.telemetry.sender import Patience, Sender, rejected_spans, trace_url

EPOCH = 1_764_600_000_000_000_000


def _sender(answers: list[object], waits: list[float], **more: object) -> Sender:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        one = answers.pop(0)
        if isinstance(one, Exception):
            raise one
        assert isinstance(one, httpx.Response)
        return one

    sender = Sender(
        "http://ear:4318",
        epoch_unix_ns=EPOCH,
        transport=httpx.MockTransport(answer),
        sleep=waits.append,
        **more,  # type: ignore[arg-type]
    )
    sender.seen = seen  # type: ignore[attr-defined]
    return sender


def test_a_body_says_when_it_would_arrive() -> None:
    sender = _sender([httpx.Response(200)], [], token="secret")
    assert sender.send(7, b"body")
    (request,) = sender.seen  # type: ignore[attr-defined]
    assert request.url == "http://ear:4318/v1/traces"
    assert request.headers["x-tailburn-received-unix-ns"] == str(EPOCH + 7)
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers["authorization"] == "Bearer secret"
    assert request.content == b"body"


def test_a_target_that_is_busy_or_gone_is_asked_again() -> None:
    waits: list[float] = []
    busy = httpx.Response(429, headers={"retry-after": "2"})
    answers = [httpx.ConnectError("refused"), httpx.Response(503), busy, httpx.Response(200)]
    sender = _sender(answers, waits)
    assert sender.send(0, b"x")
    assert waits == [0.25, 0.5, 2.0]
    assert (sender.sent.bodies, sender.sent.retries, sender.sent.refused_bodies) == (1, 3, 0)


def test_a_target_that_never_takes_it_is_counted() -> None:
    waits: list[float] = []
    sender = _sender([httpx.ConnectError("refused")] * 3, waits, patience=Patience(tries=3))
    assert not sender.send(0, b"x")
    assert (sender.sent.bodies, sender.sent.refused_bodies) == (0, 1)
    assert "ConnectError" in sender.sent.last_error
    assert len(waits) == 2


def test_what_a_target_refuses_for_good_is_not_sent_again() -> None:
    sender = _sender([httpx.Response(400), httpx.Response(200)], [])
    sent = sender.send_all([(0, b"bad"), (1, b"good")])
    assert (sent.bodies, sent.refused_bodies, sent.retries) == (1, 1, 0)


def test_spans_rejected_within_a_body_are_counted() -> None:
    partial = bytes.fromhex("0a09") + b"\x08\xac\x02" + b"\x12\x04why?"
    assert rejected_spans(partial) == 300
    assert rejected_spans(b"") == 0
    assert rejected_spans(b"\x0a\x05\x08") == 0
    sender = _sender([httpx.Response(200, content=partial)], [])
    assert sender.send(0, b"x")
    assert sender.sent.rejected_spans == 300


def test_a_run_with_a_pace_waits_for_its_instants() -> None:
    waits: list[float] = []
    sender = _sender([httpx.Response(200)] * 2, waits, pace=2.0, clock=lambda: 100.0)
    sender.send_all([(5_000_000_000, b"x"), (9_000_000_000, b"y")])
    assert waits == [2.0]


@pytest.mark.parametrize("url", ["ear", "ftp://ear", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="want http://host:port"):
        trace_url(url)


def test_a_path_of_the_user_s_is_kept() -> None:
    assert trace_url("http://ear/otlp/v1/traces") == "http://ear/otlp/v1/traces"
