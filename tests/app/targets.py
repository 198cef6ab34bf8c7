"""Targets that answer with saved answers, each on a port of its own."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SCRAPES = Path(__file__).parents[1] / "collector" / "signals" / "scrapes"


def saved(name: str) -> bytes:
    """An answer of a real program."""
    return gzip.decompress((SCRAPES / f"{name}.prom.gz").read_bytes())


class Handler(BaseHTTPRequestHandler):
    """Says nothing of what it is asked."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def listening(handler: type[Handler]) -> Iterator[str]:
    """The `host:port` at which it answers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The `host:port` of a target that answers so."""

    class Saved(Handler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with listening(Saved) as address:
        yield address
