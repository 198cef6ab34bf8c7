"""Lists of targets: files as Prometheus has them, DNS names, and what happens when one fails."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from tailburn.collector.scrape.discovery import Discovery, FileFinder
from tailburn.collector.scrape.dns import DnsFinder
from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.scrape.files import read_files
from tailburn.collector.scrape.http_list import HttpFinder
from tailburn.collector.signals.targets import Target, target_of
from tests.collector.scrape.answers import client_of

TEXT = """\
- targets: ["10.0.0.1:8000", "10.0.0.2:8000"]
  labels:
    job: chat
    pool: interactive
    team: none of ours
    __metrics_path__: /prometheus/metrics
    __param_format: text
- targets: ["https://gateway/metrics?x=1", "ncclras://node-a:28028"]
"""


def test_a_file_of_prometheus_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(TEXT)
    first, second, gateway, ras = read_files([file], "acme")
    assert first.url == "http://10.0.0.1:8000/prometheus/metrics?format=text"
    assert (first.instance, first.job, first.tenant) == ("10.0.0.1:8000", "chat", "acme")
    assert first.labels == {"pool": "interactive"}
    assert first.via == f"{file}:1"
    assert second.instance == "10.0.0.2:8000"
    assert (gateway.url, gateway.instance) == ("https://gateway/metrics?x=1", "gateway:443")
    assert (ras.url, ras.instance) == ("ncclras://node-a:28028", "node-a:28028")


def test_json_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(json.dumps([{"targets": ["a:1"], "labels": {"tenant": "other"}}], indent=2))
    (target,) = read_files([file], "acme")
    assert (target.url, target.tenant) == ("http://a:1/metrics", "other")


def test_a_name_may_stand_for_many_files_and_an_empty_one_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- targets: ['a:1']\n")
    (tmp_path / "b.yaml").write_text("")
    (tmp_path / "c.yml").write_text("- targets: ['c:1']\n")
    assert [t.instance for t in read_files([tmp_path / "*.yaml"], "x")] == ["a:1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("targets: [a]", "1: file: want a list of {targets: "),
        ("- labels: {}", "1: file[0]: want targets"),
        ("- targets: ['a:b']", "1: file[0].targets[0]: 'a:b' Port could"),
        ("- targets: ['ftp://a']", "1: file[0].targets[0]: 'ftp://a' want host:port"),
        ("- targets: [", "1: YAML: "),
    ],
)
def test_a_fault_in_a_file_has_its_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(text)
    with pytest.raises(DiscoveryError) as error:
        read_files([file], "x")
    assert str(error.value).startswith(f"{file}:{told}")


def test_a_password_in_an_address_is_no_part_of_its_name() -> None:
    target = target_of("http://user:secret@engine:8000/metrics", {}, "", "x")
    assert target.instance == "engine:8000"


def finds(finder: FileFinder | DnsFinder) -> list[str]:
    return [target.url for target in asyncio.run(_find(finder))]


async def _find(finder: FileFinder | DnsFinder) -> Sequence[Target]:
    return await finder.find()


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text("- targets: ['a:1']\n")
    finder = FileFinder([file], "x")
    assert finds(finder) == ["http://a:1/metrics"]
    file.write_text("- targets: ['b:1', 'c:1']\n")
    assert finds(finder) == ["http://b:1/metrics", "http://c:1/metrics"]


def test_a_list_that_fails_stays_as_it_was_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text("- targets: ['a:1']\n")
    discovery = Discovery([FileFinder([file], "x")])

    def targets() -> list[str]:
        return [target.instance for target in asyncio.run(discovery.targets())]

    assert targets() == ["a:1"]
    file.write_text("- targets: [\n")
    assert targets() == targets() == ["a:1"]
    assert len(caplog.records) == 1
    assert "the list before stays in use" in caplog.text
    file.unlink()
    assert targets() == ["a:1"]
    file.write_text("- targets: ['b:1']\n")
    assert targets() == ["b:1"]
    assert caplog.records[-1].getMessage() == "targets: files: all is well again, 1 targets"


def listed(answer: httpx.Response) -> list[Target]:
    async def run() -> list[Target]:
        async with client_of(lambda request: answer) as client:
            return list(await HttpFinder("http://lists:9500/http_sd", client, "acme").find())

    return asyncio.run(run())


def test_a_list_over_http_is_that_of_prometheus() -> None:
    labels = {"job": "engine", "instance": "vllm-0", "__metrics_path__": "/targets/a/metrics"}
    first, second = listed(
        httpx.Response(200, json=[{"targets": ["a:1"], "labels": labels}, {"targets": ["b:1"]}])
    )
    assert (first.url, first.instance) == ("http://a:1/targets/a/metrics", "vllm-0")
    assert (second.url, second.via) == ("http://b:1/metrics", "list of lists:9500")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx.Response(404), "answers HTTP 404"),
        (httpx.Response(200, text="<html>"), "the answer is no list of targets"),
        (httpx.Response(200, json={"targets": []}), "the answer is no list of targets"),
        (httpx.Response(200, json=[{"targets": ["a:b"]}]), "'a:b': Port"),
    ],
)
def test_what_is_no_list_is_told(answer: httpx.Response, told: str) -> None:
    with pytest.raises(DiscoveryError, match=told):
        listed(answer)


def test_each_address_of_a_name_is_a_target() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        assert (host, port) == ("engines.prod", 8000)
        return ["10.0.0.1", "fd00::1"]

    finder = DnsFinder("http://engines.prod:8000/prometheus/metrics", "x", resolver)
    found = asyncio.run(_find(finder))
    assert [target.url for target in found] == [
        "http://10.0.0.1:8000/prometheus/metrics",
        "http://[fd00::1]:8000/prometheus/metrics",
    ]
    assert {(target.job, target.via) for target in found} == {
        ("engines.prod", "DNS http://engines.prod:8000/prometheus/metrics")
    }


def test_a_name_without_an_address_is_told() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(DiscoveryError, match="engines has no address: Name or service not known"):
        asyncio.run(_find(DnsFinder("engines:8000", "x", resolver)))


@pytest.mark.parametrize("entry", ["engines", "https://engines:8000", "a:b"])
def test_a_dns_entry_needs_a_port_and_no_certificate(entry: str) -> None:
    with pytest.raises(ValueError, match=entry):
        DnsFinder(entry, "x")
