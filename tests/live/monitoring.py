"""A real Prometheus and a real Alertmanager, each in a folder of its own, and who is paged."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.app.targets import Handler, listening
from tests.live.service import free_ports, until

_INTERVAL = re.compile(r"^(    interval: ).*$", re.M)


class Program:
    """A server that answers on `url`."""

    def __init__(self, url: str, arguments: Sequence[str], folder: Path) -> None:
        """Not started yet; it runs in `folder`, and what it says is kept there."""
        folder.mkdir(exist_ok=True)
        self.url = url
        self._arguments = arguments
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                self._arguments, stdout=said, stderr=said, cwd=self._folder
            )
        self.wait_until_ready()

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def get(self, path: str, **parameters: str) -> Any:
        answer = httpx.get(self.url + path, params=parameters, timeout=30, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_until_ready(self) -> None:
        until(self._is_ready, 60)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "said").read_text()
        try:
            return httpx.get(f"{self.url}/-/ready", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


class Prometheus(Program):
    """Asked through its API."""

    def query(self, promql: str) -> list[dict[str, Any]]:
        """An instant vector: `metric` and `value` of each sample."""
        found: list[dict[str, Any]] = self.get("/api/v1/query", query=promql)["data"]["result"]
        return found

    def number(self, promql: str) -> float | None:
        """The value of the one sample that there is."""
        found = self.query(promql)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        """Every rule as loaded, with its health."""
        groups = self.get("/api/v1/rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


class Pager:
    """A webhook that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.before_answer: Callable[[], None] = lambda: None


@contextmanager
def paging() -> Iterator[tuple[str, Pager]]:
    """The address of a webhook, and what it is told."""
    pager = Pager()

    class Told(Handler):
        def do_POST(self) -> None:
            pager.told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            pager.before_answer()
            self.send_response(200)
            self.end_headers()

    with listening(Told) as address:
        yield f"http://{address}/", pager


@contextmanager
def alertmanager(program: str, folder: Path, config: Path) -> Iterator[Program]:
    """`config` as it was generated."""
    (port,) = free_ports(1)
    arguments = [
        f"--config.file={config}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--data.maintenance-interval=1s",  # what it remembers over a kill
    ]
    with _running(Program(f"http://127.0.0.1:{port}", [program, *arguments], folder)) as running:
        yield running


def fill(
    promtool: str, folder: Path, values: Mapping[str, Sequence[float | None]], begin_s: int
) -> None:
    """Give the Prometheus that will run in `folder` a past: each series at every whole minute.

    Series are named as selectors, and all are counters; None where nothing was scraped.
    """
    lines, seen = [], ""
    for series, counted in sorted(values.items()):
        family = series.partition("{")[0].removesuffix("_total")
        if family != seen:
            lines.append(f"# TYPE {family} counter")
            seen = family
        lines += [
            f"{series} {value:g} {begin_s + 60 * minute}"
            for minute, value in enumerate(counted)
            if value is not None
        ]
    folder.mkdir(exist_ok=True)
    (folder / "past").write_text("\n".join([*lines, "# EOF", ""]))
    _blocks(promtool, folder, "openmetrics", folder / "past", folder / "tsdb")


def record(
    promtool: str, folder: Path, running: "Prometheus", rules: Path, begin_s: int, end_s: int
) -> None:
    """Give it what these recording rules would have recorded of its past by then."""
    _blocks(
        promtool, folder, "rules", f"--url={running.url}", f"--start={begin_s}", f"--end={end_s}",
        f"--output-dir={folder / 'tsdb'}", rules,
    )  # fmt: skip


def _blocks(promtool: str, folder: Path, *arguments: object) -> None:
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr


@contextmanager
def prometheus(
    program: str, folder: Path, rules: Path, target: str = "", alertmanager_url: str = ""
) -> Iterator[Prometheus]:
    """Scrapes `target` every second and loads every file in `rules`."""
    (port,) = free_ports(1)
    config: dict[str, Any] = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules / "*")],
        "scrape_configs": [
            {"job_name": "tailburn", "static_configs": [{"targets": [target] if target else []}]}
        ],
    }
    if alertmanager_url:
        targets = [{"targets": [alertmanager_url.removeprefix("http://")]}]
        config["alerting"] = {"alertmanagers": [{"static_configs": targets}]}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    arguments = [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with _running(Prometheus(f"http://127.0.0.1:{port}", [program, *arguments], folder)) as running:
        yield running


def sped_up(rules: Path, folder: Path) -> Path:
    """The same rules, but that each group is evaluated every two seconds, not every minute."""
    folder.mkdir()
    for file in rules.iterdir():
        text, groups = _INTERVAL.subn(r"\g<1>2s", file.read_text())
        assert groups, f"{file.name} has no group with an interval"
        (folder / file.name).write_text(text)
    return folder


P = TypeVar("P", bound=Program)


@contextmanager
def _running(program: P) -> Iterator[P]:
    try:
        program.start()
        yield program
    finally:
        program.stop()
