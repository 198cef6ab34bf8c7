"""The web port: probes, metrics and the API, behind the gate."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tailburn.app.evaluating import Evaluating
from tailburn.app.exposition import RequestSeries
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.mixes import MixWatch
from tailburn.app.web import Behind, web_app
from tailburn.collector.doors.access import Headers, Refusal, Scope
from tailburn.engine.names import SCALE_HOLD_RECORD, SCALE_OUT_RECORD, scale_metric
from tailburn.engine.slo.model import Clock, Mix, ScaleOut, Slo, Tier
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.rules.scaling.autoscaler import Scaled, keda_of_service
from tests.app.fleets import Fleet
from tests.app.rows import RECEIVED_NS, TRACE, make_rows
from tests.app.slos import CHAT, slo_series
from tests.rules.scaling.both_faces import Stretch

OWN = replace(CHAT, name="own", select={"tenant": "alpha"})
SCALED = replace(
    CHAT,
    name="scaled",
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p99": 1.0}}},
    scale_out=ScaleOut(0.7, 240.0),
)
OWN_SCALED = replace(SCALED, name="own-scaled", select={"tenant": "alpha"})
ADMIN, ALPHA = b"Bearer admin", b"Bearer alpha"


class TwoTokens:
    """An admin's token, and one that reads tenant alpha's data."""

    def admit(
        self, peer: str | None, headers: Headers, scope: Scope, *, shows_host: bool = True
    ) -> str | Refusal:
        token = dict(headers).get(b"authorization")
        if token == ADMIN:
            return "default"
        if token == ALPHA:
            return "alpha" if scope is Scope.READ else Refusal(True, "scope read only")
        return Refusal(False, "a token is needed")


class Web:
    def __init__(
        self,
        store: Path,
        *slos: Slo,
        evaluating: Evaluating | None = None,
        now_ns: int = RECEIVED_NS + 60 * 10**9,
    ) -> None:
        self.trouble: str | None = None
        self.not_ready: str | None = None
        self.series = RequestSeries()
        self.slo_series = slo_series(CHAT)
        self.state = open_state(state_path(store))
        self.mixes = MixWatch(slos or [CHAT, OWN])
        self.incidents = IncidentKeeping(slos or [CHAT, OWN], self.state, {}, lambda: now_ns)
        self.app = web_app(
            Behind(
                store=ParquetStore(store),
                gate=TwoTokens(),
                series=self.series,
                slo_series=self.slo_series,
                mixes=self.mixes,
                incidents=self.incidents,
                evaluating=evaluating
                or Evaluating(slos or [CHAT, OWN], self.state, lambda: now_ns),
                health=CollectorRegistry(),
                balance=lambda: [{"resource": "{}", "received": 3, "stored": 3}],
                not_ready=lambda: self.not_ready,
                trouble=lambda: self.trouble,
                now_ns=lambda: now_ns,
            )
        )
        self.transport = httpx.ASGITransport(self.app)

    async def get(self, path: str, token: bytes | None = ADMIN) -> httpx.Response:
        headers: Sequence[tuple[bytes, bytes]] = [(b"authorization", token)] if token else []
        async with httpx.AsyncClient(transport=self.transport, base_url="http://w") as client:
            return await client.get(path, headers=list(headers))

    async def post(self, path: str, body: object, token: bytes = ADMIN) -> httpx.Response:
        async with httpx.AsyncClient(transport=self.transport, base_url="http://w") as client:
            return await client.post(path, json=body, headers=[(b"authorization", token)])


@pytest.fixture
def web(store: Path) -> Iterator[Web]:
    web = Web(store)
    yield web
    web.state.close()


def rows(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


@pytest.mark.anyio
async def test_probes_need_no_token_and_say_what_is_missing(web: Web) -> None:
    assert (await web.get("/readyz", None)).text == "ready\n"
    web.not_ready = "starting"
    answer = await web.get("/readyz", None)
    assert (answer.status_code, answer.text) == (503, "starting\n")
    assert (await web.get("/healthz", None)).status_code == 200
    web.trouble = "the disk of the log is full"
    assert (await web.get("/healthz", None)).text == "the disk of the log is full\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    ["/metrics", "/api/tails", "/api/requests", "/api/hops", f"/api/traces/{TRACE}",
     "/api/balance", "/api/baselines", "/api/scaling", "/api/scaling/chat",
     "/api/openapi.json", "/nothing"],
)  # fmt: skip
async def test_nothing_else_is_shown_without_a_token(web: Web, path: str) -> None:
    assert (await web.get(path, None)).status_code == 401


@pytest.mark.anyio
async def test_answers_are_those_of_the_command_line(web: Web) -> None:
    tails = rows(await web.get("/api/tails?by=model"))
    counts = {r["model"]: r["count"] for r in tails if r["clock"] == "ttft_client_s"}
    assert counts == {"llama": 12, "qwen": 8}
    requests = rows(await web.get("/api/requests?limit=3&where=node%3Db&model=qwen"))
    assert [r["request_id"][-2:] for r in requests] == ["11", "12", "13"]
    hops = rows(await web.get("/api/hops?slowest=0.05"))
    assert {r["owner"] for r in hops if r["hop"] == "total"} == {"gateway", None}
    trace = (await web.get(f"/api/traces/{TRACE}")).json()
    assert [s["hop"] for s in trace["spans"]] == ["client", None]
    usual = rows(await web.get("/api/baselines?by=model&clock=ttft"))
    assert {r["model"]: r["now"]["requests"] for r in usual} == {"llama": 12, "qwen": 8}
    assert rows(await web.get("/api/balance"))[0]["received"] == 3


@pytest.mark.anyio
async def test_a_window_is_relative_to_the_service_s_clock(web: Web) -> None:
    assert len(rows(await web.get("/api/requests?since=1m"))) == 20
    assert not rows(await web.get("/api/requests?since=59s"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/api/baselines?by=colour", "dimension 'colour' is not known"),
        ("/api/baselines?since=1h", "baselines have a present, `over`"),
        ("/api/tails?by=colour", "can't group by 'colour'"),
        ("/api/requests?where=colour%3Dred", "requests has no column 'colour'"),
        ("/api/requests?since=soon", "want a duration"),
        ("/api/traces/xyz", "want a trace id"),
    ],
)
async def test_a_bad_question_is_answered_with_400_and_why(
    web: Web, path: str, detail: str
) -> None:
    answer = await web.get(path)
    assert answer.status_code == 400
    assert detail in answer.json()["detail"]


@pytest.mark.anyio
async def test_a_tenant_sees_its_own_data_only(web: Web) -> None:
    web.series.observe(make_rows(queue_s=[0.1, 0.2], tenant=["alpha", "beta"]))
    assert not rows(await web.get("/api/requests", ALPHA))
    assert not rows(await web.get("/api/tails?where=tenant%3Dbeta", ALPHA))
    assert not rows(await web.get("/api/baselines?where=tenant%3Dbeta", ALPHA))
    assert (await web.get(f"/api/traces/{TRACE}", ALPHA)).status_code == 400
    assert (await web.get("/api/balance", ALPHA)).status_code == 403
    mine, all_ = (await web.get("/metrics", ALPHA)).text, (await web.get("/metrics")).text
    assert 'tenant="alpha"' in mine and "beta" not in mine
    assert 'tenant="beta"' in all_


@pytest.mark.anyio
async def test_alerts_that_are_summed_over_tenants_are_for_admins_alone(web: Web) -> None:
    every = {row["slo"] for row in rows(await web.get("/api/alerts"))}
    assert every == {CHAT.name, OWN.name}
    mine = rows(await web.get("/api/alerts", ALPHA))
    assert {row["slo"] for row in mine} == {OWN.name}
    assert {row["status"] for row in mine} == {"inactive"}
    assert (await web.get("/api/alerts", None)).status_code == 401


@pytest.mark.anyio
async def test_budgets_are_told_apart_as_alerts_are(web: Web) -> None:
    every = rows(await web.get("/api/budgets"))
    assert {row["slo"] for row in every} == {CHAT.name, OWN.name}
    assert {row["slo"] for row in rows(await web.get("/api/budgets", ALPHA))} == {OWN.name}
    assert {row["slo"] for row in rows(await web.get(f"/api/budgets?slo={CHAT.name}"))} == {
        CHAT.name
    }


@pytest.mark.anyio
async def test_a_budget_says_where_its_slo_was_made_of_other_requests(tmp_path: Path) -> None:
    """Of all tenants' requests only to whoever sees them all."""
    requests = make_rows(model=["llama"] * 400, tenant=["alpha"] * 400)
    ParquetStore(tmp_path).publish("requests", requests, LogRange(1, 1))
    was = Mix(1000, {"model": {"qwen": 1.0}})
    web = Web(
        tmp_path,
        replace(CHAT, mix=was),
        replace(OWN, mix=was),
        replace(CHAT, name="by-tenant", by=("tenant",), mix=was),
        replace(CHAT, name="alike", mix=Mix(1000, {"model": {"llama": 1.0}})),
    )
    try:
        assert {row["mix_moved"] for row in rows(await web.get("/api/budgets"))} == {None}
        web.mixes.look(ParquetStore(tmp_path), RECEIVED_NS + 60 * 10**9)
        every = {row["slo"]: row["mix_moved"] for row in rows(await web.get("/api/budgets"))}
        mine = {row["slo"]: row["mix_moved"] for row in rows(await web.get("/api/budgets", ALPHA))}
    finally:
        web.state.close()
    assert every["alike"] is None
    assert every["chat"] == every["by-tenant"] == every["own"]
    assert every["own"].startswith("model moved (index ")
    assert mine == {"own": every["own"]}


@pytest.mark.anyio
async def test_scaling_answers_keda_or_fails_in_a_way_it_takes_for_a_failure(store: Path) -> None:
    web = Web(store, SCALED, OWN_SCALED)
    try:
        told = rows(await web.get("/api/scaling"))
        assert [row["slo"] for row in told] == ["scaled", "own-scaled"]
        assert [row["slo"] for row in rows(await web.get("/api/scaling", ALPHA))] == ["own-scaled"]
        missing = await web.get("/api/scaling/scaled?signal=scale_out")
        assert missing.status_code == 503
        assert missing.json()["detail"].startswith("scaled: scale_out has no value: no minute")
        unknown = await web.get("/api/scaling/scalde")
        assert (unknown.status_code, unknown.json()["detail"]) == (
            404, "no SLO 'scalde' that scales; did you mean scaled?",
        )  # fmt: skip
        hidden = await web.get("/api/scaling/scaled", ALPHA)
        assert (hidden.status_code, "did you mean own-scaled" in hidden.text) == (404, True)
        assert (await web.get("/api/scaling/scaled?model=a")).status_code == 400
    finally:
        web.state.close()


@pytest.mark.anyio
async def test_scaling_gives_flat_numbers_and_gauges(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "store", replace(SCALED, vantage="gateway"))
    fleet.minutes(Stretch(35, 600))
    fleet.minutes(Stretch(8, 600, 0.1, 2.0, 0.05, hops={"queue": 1}))
    web = Web(tmp_path / "store", evaluating=fleet.evaluating, now_ns=fleet.now_ns)
    try:
        answer = await web.get("/api/scaling/scaled?signal=scale_out_gated&signal=scale_hold")
        numbers = answer.json()
        assert answer.status_code == 200
        assert list(numbers) == ["scale_out_gated", "scale_hold"]
        assert numbers["scale_out_gated"] > 1.11 and numbers["scale_hold"] == 1
        metrics = (await web.get("/metrics")).text
        gauge = f'tailburn_slo_scale_out_gated_ratio{{slo="scaled"}} {numbers["scale_out_gated"]}'
        assert gauge in metrics
        found = {family.name for family in text_string_to_metric_families(metrics)}
        assert {scale_metric(r) for r in (SCALE_OUT_RECORD, SCALE_HOLD_RECORD)} <= found
        assert "tailburn_slo_scale" not in (await web.get("/metrics", ALPHA)).text
    finally:
        web.state.close()
        fleet.database.close()


@pytest.mark.anyio
async def test_keda_finds_a_number_where_the_file_written_for_it_looks(tmp_path: Path) -> None:
    served = replace(SCALED, vantage="gateway", by=("model",))
    fleet = Fleet(tmp_path / "store", served)
    fleet.minutes(Stretch(35, 600))
    web = Web(tmp_path / "store", evaluating=fleet.evaluating, now_ns=fleet.now_ns)
    scaled = Scaled(served, "chat-a", values={"model": "a"})
    try:
        for trigger in keda_of_service(scaled, "http://w")["spec"]["triggers"]:
            asked = trigger["metadata"]
            answer = await web.get(asked["url"].removeprefix("http://w"))
            assert isinstance(answer.json()[asked["valueLocation"]], float), answer.text
        later_ns = fleet.now_ns + 6 * 60 * 10**9
        gone = Web(tmp_path / "store", evaluating=fleet.evaluating, now_ns=later_ns)
        answer = await gone.get(asked["url"].removeprefix("http://w"))
        assert answer.status_code == 503
        gone.state.close()
    finally:
        web.state.close()
        fleet.database.close()
