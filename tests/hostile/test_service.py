"""The whole service under what no exporter sends, while a well-behaved one goes on."""

import gzip
import random
import subprocess
import time
from collections.abc import Iterator

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from prometheus_client.parser import text_string_to_metric_families

from tests.app.service import COMMAND, Running, chat, environment, send, serving
from tests.app.test_serve import until

pytestmark = pytest.mark.timeout(600)
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
EVIL = '\x1b]8;;http://x\x07[red]</script><img src=x>"} or vector(1) #\n{{x}}\u202e=cmd()'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = tmp_path_factory.mktemp("hostile") / "store"
    with serving(store, "--idle-close-s", "0.5", "--rootless-close-s", "0.5") as running:
        yield running


def post(service: Running, body: bytes, **headers: str) -> httpx.Response:
    wanted = {"content-type": "application/x-protobuf"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    address = service.addresses["OTLP/HTTP"] + "/v1/traces"
    return httpx.post(address, content=body, headers=wanted, timeout=30)


def call(service: Running, body: bytes) -> grpc.StatusCode:
    with grpc.insecure_channel(service.addresses["OTLP/gRPC"]) as channel:
        try:
            channel.unary_unary(EXPORT)(body, timeout=30)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def test_cut_and_random_bodies_cost_no_span_of_another_sender(service: Running) -> None:
    chance = random.Random(7)
    whole = chat(1 << 40, time.time_ns()).SerializeToString()
    before = service.totals().get("stored", 0)
    wrong, taken = 0, 0
    for number in range(1, 61):
        cut = whole[: chance.randrange(1, len(whole))]
        noise = chance.randbytes(chance.randrange(1, 4000))
        for body, headers in (
            (cut, {}),
            (noise, {}),
            (cut, {"content_type": "application/json"}),
            (noise, {"content_encoding": "gzip"}),
            (gzip.compress(whole)[:-9], {"content_encoding": "gzip"}),
            (noise, {"content_encoding": "zstd"}),
        ):
            answer = post(service, body, **headers)
            wrong += answer.status_code != 200
            assert answer.status_code in (200, 400)
            if answer.status_code == 400 and "content_type" not in headers:
                assert Status.FromString(answer.content).message
        assert call(service, noise) in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT)
        taken += send(service.addresses["OTLP/HTTP"], chat(number, time.time_ns())).is_success
    assert taken == 60 and wrong > 200
    until(lambda: service.totals()["stored"] >= before + 60)
    totals = service.totals()
    assert totals.pop("received") == sum(totals.values())
    until(lambda: len(service.rows("/api/requests?model=tiny-llama")) >= 60)
    assert service.get("/healthz").text == "ok\n"


@pytest.mark.parametrize("what", ["name", "model", "service", "key", "value"])
def test_texts_of_a_sender_stay_texts(service: Running, what: str) -> None:
    request = chat(1000 + len(what) * 31 + ord(what[0]), time.time_ns() - 10**9)
    resource = request.resource_spans[0]
    span = resource.scope_spans[0].spans[0]
    if what == "name":
        span.name = EVIL
    elif what == "service":
        resource.resource.attributes[0].value.string_value = EVIL
    elif what == "model":
        span.attributes[1].value.string_value = EVIL
    else:
        key = EVIL if what == "key" else "x.note"
        span.attributes.add(key=key).value.string_value = EVIL
    assert send(service.addresses["OTLP/HTTP"], request).status_code == 200
    trace_id = span.trace_id.hex()
    until(lambda: bool(service.get(f"/api/traces/{trace_id}").json().get("requests")))
    families = list(text_string_to_metric_families(service.get("/metrics").text))
    names = {sample.name for family in families for sample in family.samples}
    assert {name.partition("_")[0] for name in names} <= {"tailburn", "process", "python"}
    for command in (["trace", trace_id], ["requests"], ["tails", "--by", "model,service"]):
        shown = subprocess.run(
            [*COMMAND, *command, "--store", str(service.store)],
            capture_output=True, text=True, env=environment(), check=True,
        ).stdout  # fmt: skip
        assert "\x1b]8" not in shown and "\x07" not in shown and "\u202e" not in shown


@pytest.mark.parametrize(
    "query",
    [
        "/api/requests?where=a'] OR 1=1 --=x",
        "/api/tails?by=model) FROM requests; --",
        "/api/tails?where=model'='x",
        "/api/requests?since=never",
        "/api/traces/'; drop table requests",
    ],
)
def test_a_question_is_never_code(service: Running, query: str) -> None:
    answer = service.get(query)
    assert answer.status_code in (400, 404), answer.text
    assert service.get("/api/requests?model=' OR 1=1 --").json() == []


def test_a_reader_that_goes_away_is_no_error(service: Running) -> None:
    send(service.addresses["OTLP/HTTP"], chat(77_777, time.time_ns()))
    arguments = [*COMMAND, "requests", "--json", "--store", str(service.store)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_full_disk_behind_stdout_is_said_in_one_line(service: Running) -> None:
    arguments = [*COMMAND, "tails", "--json", "--store", str(service.store)]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, env=environment())
    assert ended.returncode == 2
    assert ended.stderr == b"tailburn: standard output: No space left on device\n"
