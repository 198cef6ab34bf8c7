"""The web port: metrics, health, and the API over the store."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.types import ASGIApp

from tailburn.app.answers.alerts import alert_rows
from tailburn.app.answers.baselines import baseline_rows
from tailburn.app.answers.baselines_asked import asked_for
from tailburn.app.answers.budgets import budget_rows
from tailburn.app.answers.hops import excess_rows, hop_rows
from tailburn.app.answers.promises import promises_of
from tailburn.app.answers.question import Question, question
from tailburn.app.answers.requests import request_rows
from tailburn.app.answers.scaling import NotThere, NoValue, Shown
from tailburn.app.answers.tails import tail_rows
from tailburn.app.answers.trace import trace_answer
from tailburn.app.births import Scraper
from tailburn.app.errors import UserError
from tailburn.app.evaluating import Evaluating
from tailburn.app.exposition import RequestSeries
from tailburn.app.guard import Guard, seen_tenant
from tailburn.app.in_flight_series import in_flight_text
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.mixes import MixWatch
from tailburn.app.options import BASELINE_BY, BASELINE_CLOCKS, BASELINE_OVER
from tailburn.app.scaling_series import scaling_text
from tailburn.app.slo_series import SloSeries
from tailburn.app.tenants import selected_tenants
from tailburn.app.web_alertmanager import alertmanager_routes
from tailburn.app.web_changes import change_routes
from tailburn.app.web_incidents import incident_routes
from tailburn.app.web_json import Rows, json_answer
from tailburn.app.web_pair import pair_routes
from tailburn.app.web_problems import add_problems
from tailburn.app.web_silences import silence_routes
from tailburn.collector.doors.access import Gate
from tailburn.engine.store.api import Store

MAX_REQUESTS = 10_000


@dataclass(frozen=True)
class Behind:
    """What the web port shows. `not_ready` says why not yet; `trouble` why not any more."""

    store: Store
    gate: Gate
    series: RequestSeries
    slo_series: SloSeries
    evaluating: Evaluating
    incidents: IncidentKeeping
    mixes: MixWatch
    health: CollectorRegistry
    balance: Callable[[], Rows]
    not_ready: Callable[[], str | None]
    trouble: Callable[[], str | None]
    now_ns: Callable[[], int]


def web_app(behind: Behind) -> ASGIApp:
    """The ASGI application, access control around everything but the probes."""
    app = FastAPI(title="tailburn", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    _add_probes(app, behind)
    _add_metrics(app, behind)
    _add_api(app, behind)
    slos = behind.evaluating.slos
    app.include_router(incident_routes(behind.incidents, slos, behind.gate, behind.now_ns))
    app.include_router(silence_routes(behind.incidents, behind.gate))
    app.include_router(alertmanager_routes(behind.incidents, slos, behind.gate, behind.now_ns))
    app.include_router(pair_routes(behind.incidents, behind.gate))
    app.include_router(change_routes(behind.incidents.changes, behind.gate, behind.now_ns))
    add_problems(app)
    return Guard(app, behind.gate)


def _add_probes(app: FastAPI, behind: Behind) -> None:
    @app.get("/healthz", include_in_schema=False)
    def healthz() -> PlainTextResponse:
        problem = behind.trouble()
        return PlainTextResponse(f"{problem or 'ok'}\n", 503 if problem else 200)

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> PlainTextResponse:
        problem = behind.not_ready() or behind.trouble()
        return PlainTextResponse(f"{problem or 'ready'}\n", 503 if problem else 200)


def _add_metrics(app: FastAPI, behind: Behind) -> None:
    @app.get("/metrics", include_in_schema=False)
    def metrics(request: Request) -> Response:
        tenant = seen_tenant(request, behind.gate)
        text = behind.series.render(tenant) + behind.slo_series.render(_scraper(request), tenant)
        text += behind.mixes.render(tenant)
        evaluating = behind.evaluating
        text += scaling_text(evaluating.scaling(), behind.now_ns(), tenant)
        text += in_flight_text(evaluating.in_flight(), evaluating.slos, tenant)
        body = text.encode() + generate_latest(behind.health)
        return Response(body, media_type=CONTENT_TYPE_LATEST)


def _add_api(app: FastAPI, behind: Behind) -> None:
    def asked(
        request: Request,
        since: str | None = None,
        until: str | None = None,
        model: str | None = None,
        where: Annotated[list[str] | None, Query()] = None,
    ) -> Question:
        """The question, bound to the tenant that may be seen."""
        found = question(since, until, model, where or (), behind.now_ns())
        tenant = seen_tenant(request, behind.gate)
        if tenant is not None:
            found.where["tenant"] = tenant
        return found

    Asked = Annotated[Question, Depends(asked)]

    @app.get("/api/tails")
    def tails(asked: Asked, by: str = "", exact: bool = False) -> Response:
        names = [name for name in by.split(",") if name]
        return json_answer(tail_rows(behind.store, asked, names, exact))

    @app.get("/api/requests")
    def requests(
        asked: Asked, limit: Annotated[int, Query(ge=1, le=MAX_REQUESTS)] = 1000
    ) -> Response:
        return json_answer(request_rows(behind.store, asked, limit))

    @app.get("/api/hops")
    def hops(asked: Asked, slowest: Annotated[float | None, Query(gt=0, lt=1)] = None) -> Response:
        if slowest is None:
            return json_answer(hop_rows(behind.store, asked))
        return json_answer(excess_rows(behind.store, asked, slowest))

    @app.get("/api/traces/{trace_id}")
    def trace(request: Request, trace_id: str) -> Response:
        answer = trace_answer(behind.store, trace_id, seen_tenant(request, behind.gate))
        return json_answer(
            {"trace_id": answer.trace_id, "spans": answer.spans, "requests": answer.requests}
        )

    @app.get("/api/alerts")
    def alerts(request: Request) -> Response:
        evaluating = behind.evaluating
        tenant = seen_tenant(request, behind.gate)
        tenants = selected_tenants(evaluating.slos)
        return json_answer(alert_rows(evaluating.states(), evaluating.watches, tenants, tenant))

    @app.get("/api/budgets")
    def budgets(request: Request, slo: str | None = None) -> Response:
        promises = promises_of(behind.evaluating.slos)
        tenant = seen_tenant(request, behind.gate)
        moved = behind.mixes.moved(tenant)
        return json_answer(
            budget_rows(
                behind.store, promises, behind.now_ns(), slo=slo, tenant=tenant, moved=moved
            )
        )

    @app.get("/api/baselines")
    def baselines(
        asked: Asked,
        by: str = BASELINE_BY,
        clock: str = BASELINE_CLOCKS,
        over: str = BASELINE_OVER,
    ) -> Response:
        if asked.window.since_ns is not None:
            raise UserError("since: baselines have a present, `over`, up to `until`")
        now_ns = asked.window.until_ns or behind.now_ns()
        wanted = asked_for(now_ns, over, by, clock, asked.where)
        return json_answer(baseline_rows(behind.store, wanted, behind.evaluating.incidents(now_ns)))

    @app.get("/api/scaling")
    def scaling(request: Request) -> Response:
        return json_answer(_shown_scaling(behind, request).rows())

    @app.get("/api/scaling/{slo}")
    def scaling_of(
        request: Request, slo: str, signal: Annotated[list[str] | None, Query()] = None
    ) -> Response:
        where = {k: v for k, v in request.query_params.items() if k != "signal"}
        try:
            return json_answer(_shown_scaling(behind, request).flat(slo, where, signal or ()))
        except NotThere as error:
            raise HTTPException(404, "; ".join(error.lines)) from None
        except NoValue as error:
            raise HTTPException(503, "; ".join(error.lines)) from None

    @app.get("/api/balance")
    def balance(request: Request) -> Response:
        if seen_tenant(request, behind.gate) is not None:
            raise HTTPException(403, "the balance is of all tenants: it needs scope admin")
        return json_answer(behind.balance())


def _shown_scaling(behind: Behind, request: Request) -> Shown:
    evaluating = behind.evaluating
    return Shown(
        evaluating.scaling(),
        evaluating.scaled,
        evaluating.no_gauges,
        behind.now_ns(),
        seen_tenant(request, behind.gate),
    )


def _scraper(request: Request) -> Scraper:
    """Tells one scraper from another: two Prometheus scrape by turns, and somebody looks on."""
    host, port = request.client or ("", 0)
    return Scraper(f"{host} {request.headers.get('user-agent', '')}", port)
