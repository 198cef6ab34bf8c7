"""Pods asked of an API server that answers as Kubernetes does."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.scrape.kubernetes import ApiServer, KubernetesFinder, api_client, api_server
from tailburn.collector.signals.targets import Target
from tests.collector.scrape.answers import client_of


def pod(name: str, annotations: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    ports = [{"containerPort": 8000, "name": "http", "protocol": "TCP"}]
    return {
        "metadata": {
            "name": name,
            "namespace": "serving",
            "labels": {"app": "vllm", "tailburn.io/pool": "interactive"},
            "annotations": {"prometheus.io/scrape": "true"} if annotations is None else annotations,
        },
        "spec": {"nodeName": "node-a", "containers": [{"name": "c", "ports": ports}]},
        "status": {"phase": "Running", "podIP": "10.1.2.3", **more},
    }


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret-token\n")
    return tmp_path


def found(
    account: Path,
    answer: Callable[[httpx.Request], httpx.Response],
    namespace: str | None = None,
) -> list[Target]:
    server = ApiServer("https://10.96.0.1:443", account)

    async def run() -> list[Target]:
        async with client_of(answer) as client:
            return list(await KubernetesFinder(server, client, "acme", namespace).find())

    return asyncio.run(run())


def pods(*items: dict[str, Any], following: str = "") -> httpx.Response:
    return httpx.Response(
        200, json={"kind": "PodList", "metadata": {"continue": following}, "items": list(items)}
    )


def test_an_annotated_pod_is_a_target(account: Path) -> None:
    (target,) = found(account, lambda request: pods(pod("vllm-0")))
    assert target.url == "http://10.1.2.3:8000/metrics"
    assert target.labels == {"replica": "vllm-0", "node": "node-a", "pool": "interactive"}
    assert (target.job, target.tenant, target.via) == ("vllm", "acme", "pod serving/vllm-0")


def test_annotations_say_port_path_and_scheme(account: Path) -> None:
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9400",
        "prometheus.io/path": "prometheus/metrics",
        "prometheus.io/scheme": "https",
    }
    (target,) = found(account, lambda request: pods(pod("a", annotations, podIP="fd00::7")))
    assert target.url == "https://[fd00::7]:9400/prometheus/metrics"


@pytest.mark.parametrize(
    "other",
    [
        pod("a", {}),
        pod("a", {"prometheus.io/scrape": "false"}),
        pod("a", {"prometheus.io/scrape": "true", "prometheus.io/port": "all"}),
        pod("a", podIP=""),
    ],
)
def test_other_pods_are_none(account: Path, other: dict[str, Any]) -> None:
    targets = found(account, lambda request: pods(other, pod("b")))
    assert [target.labels["replica"] for target in targets] == ["b"]


def test_it_asks_as_the_service_account_page_by_page(account: Path) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return pods(pod("a"), following="next") if len(asked) == 1 else pods(pod("b"))

    assert len(found(account, answer, "serving")) == 2
    assert asked[0].url.path == "/api/v1/namespaces/serving/pods"
    assert asked[0].url.params["fieldSelector"] == "status.phase=Running"
    assert "continue" not in asked[0].url.params
    assert asked[1].url.params["continue"] == "next"
    assert {request.headers["authorization"] for request in asked} == {"Bearer secret-token"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx.Response(403, json={}), "HTTP 403: the service account needs a role that may list"),
        (httpx.Response(500), "HTTP 500$"),
        (httpx.Response(200, text="<html>"), "is no list of pods"),
    ],
)
def test_an_api_server_that_refuses_is_told_without_the_token(
    account: Path, answer: httpx.Response, told: str
) -> None:
    with pytest.raises(DiscoveryError, match=told) as error:
        found(account, lambda request: answer)
    assert "secret-token" not in str(error.value)


def test_outside_a_cluster_is_said_so(account: Path) -> None:
    with pytest.raises(DiscoveryError, match="no pod: want KUBERNETES_SERVICE_HOST"):
        api_server({}, account)
    server = api_server(
        {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, account
    )
    assert server.url == "https://[fd00::1]:6443"


def test_an_authority_that_is_none_is_refused(account: Path) -> None:
    (account / "ca.crt").write_text("no certificate")
    with pytest.raises(DiscoveryError, match=r"ca\.crt: no certificate of an authority"):
        api_client(ApiServer("https://x", account))
