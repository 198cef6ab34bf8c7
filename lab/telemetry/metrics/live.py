"""All targets of a fleet on one port, as a Prometheus or our own service scrapes them.

    with LiveTargets(port=9099) as live:
        live.show(scrapes)                   # the last of them is what is shown from now on

`/targets/NAME/metrics` is a target's page, `/http_sd` the list of all for Prometheus's
`http_sd_configs`. A target that is down breaks the connection off; one that is late, is.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from tailburn.lab.telemetry.metrics.listing import Target
from tailburn.lab.telemetry.metrics.metrics_text import Scrapes

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class LiveTargets:
    """Serves what `show` was last given, on threads of its own, until it is closed."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._lock = threading.Lock()
        self._scrapes: Scrapes | None = None
        self._row = -1
        self._pages: dict[str, bytes | None] = {}
        self.served = 0
        self._server = ThreadingHTTPServer((host, port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """`host:port`."""
        host, port = self._server.server_address[:2]
        return f"{host if isinstance(host, str) else host.decode()}:{port}"

    def show(self, scrapes: Scrapes, row: int = -1) -> None:
        """From now on targets show this scrape; an empty `scrapes` changes nothing."""
        if not len(scrapes):
            return
        with self._lock:
            self._scrapes, self._row = scrapes, row % len(scrapes)
            self._pages = {}

    def page(self, name: str) -> tuple[float, bytes] | None:
        """A target's lateness in s and text; None: no answer. KeyError: no such target."""
        with self._lock:
            if self._scrapes is None:
                raise KeyError(name)
            target = next((t for t in self._scrapes.targets if t.name == name), None)
            if target is None:
                raise KeyError(name)
            late = self._scrapes.late_s(target, self._row)
            if name not in self._pages:
                self._pages[name] = self._scrapes.text(target, self._row)
            text = self._pages[name]
            self.served += 1
        return None if text is None or late is None else (late, text)

    def listing(self) -> list[dict[str, Any]]:
        """Targets as `http_sd_configs` takes them."""
        with self._lock:
            targets = () if self._scrapes is None else self._scrapes.targets
        return [discovered(target, self.address) for target in targets]

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def discovered(target: Target, address: str) -> dict[str, Any]:
    """One target for `http_sd_configs`: where it is scraped, and the labels it is given."""
    labels = {"__metrics_path__": target.path, **target.labels}
    return {"targets": [address], "labels": labels}


def _handler(live: LiveTargets) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/http_sd":
                self._answer(200, "application/json", json.dumps(live.listing()).encode())
                return
            parts = path.strip("/").split("/")
            if len(parts) != 3 or parts[0] != "targets" or parts[2] != "metrics":
                self._answer(404, "text/plain", b"want /http_sd or /targets/NAME/metrics\n")
                return
            try:
                found = live.page(parts[1])
            except KeyError:
                self._answer(404, "text/plain", f"no target {parts[1]!r}; see /http_sd\n".encode())
                return
            if found is None:
                self.close_connection = True
                return
            time.sleep(found[0])
            self._answer(200, CONTENT_TYPE, found[1])

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: scrapes are no news."""

    return Handler
