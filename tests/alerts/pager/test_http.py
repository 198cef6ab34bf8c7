"""Receivers that refuse, hang, pour and point elsewhere; and what of it is told."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tailburn.alerts.pager import http
from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import DeliveryError
from tests.alerts.pager.pages import Receiver


def refused(answer: httpx.Response) -> DeliveryError:
    with pytest.raises(DeliveryError) as error:
        Receiver(lambda: answer).poster().post({})
    return error.value


@pytest.mark.parametrize(
    ("code", "is_permanent"),
    [(302, True), (400, True), (401, True), (404, True), (408, False), (429, False), (500, False),
     (503, False)],
)  # fmt: skip
def test_what_may_pass_is_tried_again_and_what_will_not_is_not(
    code: int, is_permanent: bool
) -> None:
    assert refused(httpx.Response(code)).is_permanent is is_permanent


@pytest.mark.parametrize(
    ("told", "least_s", "most_s"),
    [("30", 30, 30), ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0),
     ("Fri, 31 Dec 2999 23:59:59 GMT", 1e9, 1e11)],
)  # fmt: skip
def test_a_receiver_says_how_long_to_wait(told: str, least_s: float, most_s: float) -> None:
    after_s = refused(httpx.Response(429, headers={"retry-after": told})).retry_after_s
    assert after_s is not None and least_s <= after_s <= most_s


@pytest.mark.parametrize("told", ["soon", "-1", ""])
def test_a_wait_that_is_none_is_left_out(told: str) -> None:
    assert refused(httpx.Response(503, headers={"retry-after": told})).retry_after_s is None


def test_an_error_names_the_host_and_the_answer_and_no_secret() -> None:
    error = refused(httpx.Response(403, text="no such\x1b[31m service\n" + "x" * 5_000))
    assert str(error).startswith("https://hooks.example: 403 no such[31m service xxx")
    assert len(str(error)) < 260 and "secret" not in str(error)
    with pytest.raises(ValueError, match="begins with http"):
        Poster("ftp://hooks.example/secret")
    assert Poster("https://user:word@hooks.example:8443/x").host == "https://hooks.example:8443"


@contextmanager
def _serving(answer: bytes, forever: bytes = b"") -> Iterator[str]:
    """Answers one call so, and goes on with `forever` as long as somebody reads."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
                try:
                    while forever:
                        connection.sendall(forever)
                    connection.recv(1)
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join(20)
        assert not thread.is_alive()


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with _serving(head, b"1000\r\n" + b"x" * 4096 + b"\r\n") as url:
        poster = Poster(url)
        poster.post({})
        poster.close()


@pytest.mark.parametrize("answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-"])
def test_a_receiver_that_hangs_or_talks_garbage_is_tried_again(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "TIMEOUT_S", 0.3)
    with _serving(answer) as url:
        poster = Poster(url)
        with pytest.raises(DeliveryError, match="^http://127.0.0.1:") as error:
            poster.post({})
        assert not error.value.is_permanent
        poster.close()


def test_nobody_there_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(DeliveryError) as error:
        Poster(f"http://127.0.0.1:{port}/").post({})
    assert not error.value.is_permanent
