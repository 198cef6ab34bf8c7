"""The service put together: settings in, a running service out, SIGTERM drains it."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import uvloop
from opentelemetry.trace import Tracer

from tailburn.app.access import REFRESH_S, Gate, check_exposure
from tailburn.app.births import Births
from tailburn.app.changing import EVERY_S, Changing
from tailburn.app.clock import Clock, TelemetryClock, WallClock
from tailburn.app.collecting import Collecting, collect
from tailburn.app.errors import UserError
from tailburn.app.evaluating import Evaluating
from tailburn.app.exposition import RequestSeries
from tailburn.app.health import Doors, health_registry
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.memory import keep_freed_memory
from tailburn.app.mixes import MixWatch
from tailburn.app.opening import refuse_foreign, store_of
from tailburn.app.paging.ways import tells, ways_of
from tailburn.app.pairing import pairing_of
from tailburn.app.parts import catalogue_of, reads_metrics, rules_of
from tailburn.app.selftrace import SelfTrace
from tailburn.app.servers import GRACE_S, HttpServer
from tailburn.app.settings import Settings
from tailburn.app.slo_files import load_slos
from tailburn.app.slo_series import SloSeries
from tailburn.app.sockets import bound_sockets
from tailburn.app.state import state_of
from tailburn.app.warming import warm_up
from tailburn.app.web import Behind, web_app
from tailburn.collector.accept import Accept, Accepted, Encoding, Signal
from tailburn.collector.doors.grpc import GrpcDoor
from tailburn.collector.doors.http import otlp_front
from tailburn.collector.doors.limits import Budget, Limits
from tailburn.collector.doors.tally import Tally
from tailburn.collector.doors.tls import Tls, TlsError
from tailburn.collector.hops.rules import Rules
from tailburn.engine.scaling.terms import Targets
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.shown import Shown
from tailburn.engine.store.state.tokens import Tokens

if TYPE_CHECKING:  # its HTTP client takes a twentieth of the start to import
    from tailburn.app.paging.channels import People
    from tailburn.app.scraping import Places
    from tailburn.collector.scrape.scraper import Scraper
    from tailburn.collector.signals.catalogue import Catalogue

log = logging.getLogger("tailburn")

UPKEEP_S = 60.0
"""How often tokens' use is written down and past hours are looked for."""

_HOUR_NS: Final = 3_600_000_000_000

Addresses = dict[str, str]
WhenReady = Callable[["Service"], Coroutine[None, None, None]]


def serve_until_told(settings: Settings, when_ready: WhenReady | None = None) -> None:
    """Serve until SIGTERM or SIGINT. `when_ready` runs beside it, once telemetry is taken.

    Told to stop, the service takes telemetry until `when_ready` has ended its own.

    Raises UserError for what keeps the service from starting.
    """
    keep_freed_memory()
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for talkative in ("alembic", "uvicorn", "httpx"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, when_ready))


async def _serve(settings: Settings, when_ready: WhenReady | None) -> None:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with AsyncExitStack() as stack:
        service = await Service.open(settings, stack)
        await service.start(stack)
        if when_ready is not None:
            stack.push_async_callback(_cancelled, asyncio.create_task(_beside(when_ready(service))))
        await told_to_stop.wait()
        log.info("stopping: what was taken is made durable and published")


async def _beside(shown: Coroutine[None, None, None]) -> None:
    try:
        await shown
    except Exception:
        log.exception("what is shown beside the service ended; the service goes on")


class Service:
    """The parts of a running service. What is opened is closed by the stack, last first."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        slos: Sequence[Slo],
        state: State,
        tls: Tls | None,
        sockets: dict[str, socket.socket],
        tracing: SelfTrace,
        reading: "tuple[Places, Catalogue] | None",
        people: "People | None",
    ) -> None:
        self.settings = settings
        self.addresses: Addresses = {}
        self.slos = tuple(slos)
        self._rules = rules
        self._tls = tls
        self._sockets = sockets
        self._tracing = tracing
        self._gate = Gate(Tokens(state))
        self._clock: Clock = TelemetryClock() if settings.clock == "telemetry" else WallClock()
        self._limits = Limits(in_flight_bytes=settings.in_flight_bytes)
        self._doors = Doors(Tally(), Budget(settings.in_flight_bytes))
        self._series = RequestSeries()
        births = Births(Shown(state), time.monotonic)
        self._slo_series = SloSeries(slos, births, self._clock.now_ns)
        kept_ns = round(settings.verdicts_kept_h * _HOUR_NS)
        self._evaluating = Evaluating(
            slos,
            state,
            self._clock.now_ns,
            is_told=settings.clock == "telemetry",
            targets=Targets(settings.scale_waiting, settings.scale_kv_ratio),
            reads_gauges=reading is not None,
            kept_ns=kept_ns,
        )
        web_port = sockets["web_port"].getsockname()[1]
        self._pairing = pairing_of(settings, web_port, state, self._clock.now_ns)
        self._incidents = IncidentKeeping(
            slos, state, ways_of(settings), time.time_ns, kept_ns, self._pairing
        )
        self._people = people
        self._mixes = MixWatch(slos)
        self._scraper = self._scraper_of(*reading) if reading else None
        self._collecting: Collecting | None = None
        self._not_ready: str | None = "starting"

    @property
    def evaluating(self) -> Evaluating:
        """The alerts of its SLOs."""
        return self._evaluating

    @classmethod
    async def open(cls, settings: Settings, stack: AsyncExitStack) -> "Service":
        """Check all that can be checked before anything is touched. Raises UserError."""
        ports = {name: getattr(settings, name) for name in ("http_port", "grpc_port", "web_port")}
        sockets = bound_sockets(settings.host, ports)
        for bound in sockets.values():
            stack.callback(bound.close)
        # gRPC binds its own; it was tried now to say what it would say after the recovery.
        sockets.pop("grpc_port").close()
        tls, rules, slos = _tls(settings), rules_of(settings), load_slos(settings.slo)
        people = None
        if tells(settings):
            from tailburn.app.paging.channels import people_of

            people = people_of(settings)
        reading = None
        if reads_metrics(settings):
            from tailburn.app.scraping import places_of

            catalogue = catalogue_of(settings)
            places = places_of(settings, catalogue)
            stack.push_async_callback(places.close)
            reading = (places, catalogue) if places else None
        refuse_foreign(settings.store)  # here already: the state's database is made before the lock
        state = await asyncio.to_thread(state_of, settings)
        stack.callback(state.close)
        warning = check_exposure(
            settings.host,
            has_tokens=bool(Tokens(state).all()),
            tls=tls is not None,
            insecure_transport=settings.insecure_transport,
        )
        if warning is not None:
            log.warning(warning)
        own_ports = [s.getsockname()[1] for s in sockets.values()]
        tracing = SelfTrace(
            settings.trace_endpoint, [*own_ports, settings.grpc_port], settings.host
        )
        stack.push_async_callback(asyncio.to_thread, tracing.close)
        return cls(settings, rules, slos, state, tls, sockets, tracing, reading, people)

    def now_ns(self) -> int:
        """The time that all logic goes by: the wall's, or the senders'."""
        return self._clock.now_ns()

    @property
    def collecting(self) -> Collecting:
        """The open store; there is one from the moment `start` returns."""
        assert self._collecting is not None, "the service has not started"
        return self._collecting

    async def start(self, stack: AsyncExitStack) -> None:
        """Web port first, so that probes are answered; then the store; then the doors."""
        web = HttpServer(web_app(self._behind()), self._sockets["web_port"], self._tls)
        scheme = "https" if self._tls else "http"
        self.addresses["web"] = f"{scheme}://{self._at(await web.start())}"
        stack.push_async_callback(web.stop)
        self._not_ready = "loading compiled code; the first start on a machine compiles it: minutes"
        log.info(self._not_ready)
        await asyncio.to_thread(warm_up, self.settings, self._rules)
        self._not_ready = "going on where the last run ended"
        collecting = await asyncio.to_thread(
            collect,
            self.settings,
            self._rules,
            self._clock.now_ns,
            self._series,
            self._slo_series,
            self._evaluating,
            self._clock.resume,
        )
        self._collecting = collecting
        stack.push_async_callback(asyncio.to_thread, collecting.close)
        if self._pairing is not None:
            self._pairing.start()
            stack.push_async_callback(asyncio.to_thread, self._pairing.close)
        self._incidents.start()
        self._start_paging(stack, collecting)
        stack.push_async_callback(asyncio.to_thread, self._incidents.close)
        stack.push_async_callback(asyncio.to_thread, self._evaluating.close)
        await self._open_doors(stack, collecting, scheme)
        beside = [
            asyncio.create_task(self._upkeep(collecting)),
            asyncio.create_task(self._watch_tokens()),
            asyncio.create_task(self._watch_changes(collecting)),
        ]
        if self._scraper is not None:
            beside.append(asyncio.create_task(self._scraper.run()))
        if self.settings.changes_kubernetes:
            from tailburn.app.kubernetes_changes import watch_of

            watch = watch_of(self.settings, self._incidents.changes, self._incidents.leads)
            stack.push_async_callback(watch.close)
            beside.append(asyncio.create_task(watch.run()))
        for task in beside:
            stack.push_async_callback(_cancelled, task)
        # What lives from here on lives as long as the service: no collection need look at it.
        gc.collect()
        gc.freeze()
        self._not_ready = None
        log.info("ready: %s", ", ".join(f"{k} {v}" for k, v in self.addresses.items()))

    def _start_paging(self, stack: AsyncExitStack, collecting: Collecting) -> None:
        if self._people is None:
            return
        from tailburn.app.paging.facts import Facts
        from tailburn.app.paging.loop import Paging

        url, changes = self.settings.public_url, self._incidents.changes
        facts = Facts(collecting.store, self._evaluating, changes, url)
        is_well = self._evaluating.is_well
        paging = Paging(self._incidents, self._people, facts, self._clock.now_ns, is_well)
        paging.start()
        stack.push_async_callback(asyncio.to_thread, paging.close)

    async def _open_doors(self, stack: AsyncExitStack, collecting: Collecting, scheme: str) -> None:
        accept = traced(collecting.intake, self._tracing)
        clock, tally, budget = self._clock.received_ns, self._doors.tally, self._doors.budget
        front = otlp_front(
            accept, self._gate, self._limits, None, budget=budget, clock=clock, tally=tally
        )
        http = HttpServer(front, self._sockets["http_port"], self._tls)
        self.addresses["OTLP/HTTP"] = f"{scheme}://{self._at(await http.start())}"
        stack.push_async_callback(http.stop)
        grpc = GrpcDoor(
            accept, self._gate, self._limits,
            tls=self._tls, budget=budget, clock=clock, tally=tally,
        )  # fmt: skip
        try:
            port = await grpc.start(self.settings.host, self.settings.grpc_port)
        except OSError as error:
            raise UserError(f"grpc_port: {error}") from None
        self.addresses["OTLP/gRPC"] = self._at(port)
        stack.push_async_callback(grpc.stop, GRACE_S)

    async def _watch_tokens(self) -> None:
        """Not on this thread: a database that is away must not hold up who sends telemetry."""
        while True:
            await asyncio.sleep(REFRESH_S)
            await asyncio.to_thread(self._gate.refresh)

    async def _watch_changes(self, collecting: Collecting) -> None:
        keeping = self._incidents
        store, leads = collecting.store, keeping.leads
        changing = Changing(store, keeping.changes, self._clock.now_ns, leads)
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await asyncio.to_thread(changing.step)
            except Exception:
                # A row that can't be read must not hide the changes in all others.
                log.exception("changes can't be read off telemetry; it is tried again")

    async def _upkeep(self, collecting: Collecting) -> None:
        """Every minute: tokens that were used, hours that are past, the mix of requests."""
        while True:
            await asyncio.sleep(UPKEEP_S)
            now_ns = self._clock.now_ns()
            try:
                await asyncio.to_thread(self._gate.record_use, now_ns)
                await asyncio.to_thread(collecting.compact, now_ns)
                await asyncio.to_thread(self._mixes.look, collecting.store, now_ns)
            except Exception:
                # The next minute tries again; taking telemetry must not end for it.
                log.exception("upkeep of the store failed")

    def _scraper_of(self, places: "Places", catalogue: "Catalogue") -> "Scraper":
        from tailburn.app.scraping import scraper_of

        async def take(rows: pa.Table, tenant: str, received_ns: int) -> None:
            await self.collecting.intake.take_rows(rows, tenant, received_ns)

        return scraper_of(self.settings, catalogue, places, take, self._clock.now_ns)

    def _behind(self) -> Behind:
        shown = store_of(self.settings)
        return Behind(
            store=shown,
            gate=self._gate,
            series=self._series,
            slo_series=self._slo_series,
            evaluating=self._evaluating,
            incidents=self._incidents,
            mixes=self._mixes,
            health=health_registry(
                self._doors,
                self._series,
                self._slo_series,
                shown,
                lambda: self._collecting,
                lambda: self._not_ready is None,
                lambda: self._evaluating.health,
                self._incidents.leads,
                self._scraper,
            ),
            balance=lambda: self._collecting.balance_rows() if self._collecting else [],
            not_ready=lambda: self._not_ready,
            trouble=lambda: self._collecting.trouble if self._collecting else None,
            now_ns=self._clock.now_ns,
        )

    def _at(self, port: int) -> str:
        host = self.settings.host
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def traced(accept: Accept, tracing: SelfTrace) -> Accept:
    """`accept` with a span around each body; itself where nothing is traced."""
    if not tracing.is_on:
        return accept
    tracer: Tracer = tracing.tracer("tailburn.collector")

    async def accept_traced(
        signal: Signal, encoding: Encoding, body: bytearray, tenant: str, received_ns: int
    ) -> Accepted:
        attributes = {
            "tailburn.signal": signal.value,
            "tailburn.encoding": encoding.value,
            "tailburn.body_bytes": len(body),
        }
        with tracer.start_as_current_span("accept", attributes=attributes) as span:
            accepted = await accept(signal, encoding, body, tenant, received_ns)
            span.set_attribute("tailburn.rejected", accepted.rejected)
            return accepted

    return accept_traced


def _tls(settings: Settings) -> Tls | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    tls = Tls(Path(settings.tls_cert), Path(settings.tls_key), settings.tls_client_ca)
    try:
        tls.check()
    except TlsError as error:
        raise UserError(str(error)) from None
    return tls


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
