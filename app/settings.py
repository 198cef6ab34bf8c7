"""Every setting of the service, in one table: name, type, default, help.

A name ends in its unit (`_s`, `_h`, `_bytes`). Values come from a file, the environment
(`TAILBURN_<NAME>`) and flags (`--<name>`), see `settings_sources`.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from annotated_types import Ge, Gt, Le

Port = Annotated[int, Ge(0), Le(65535)]
Count = Annotated[int, Ge(1)]
Bytes = Annotated[int, Ge(1)]
Seconds = Annotated[float, Gt(0)]
Hours = Annotated[float, Gt(0)]


class Topic(StrEnum):
    """What a setting is about: the headings of the help and the docs."""

    DOORS = "Doors"
    ACCESS = "Access"
    STORE = "Store"
    RECOGNITION = "Recognition"
    SIGNALS = "Signals"
    REQUESTS = "Requests"
    SLOS = "SLOs"
    PAGING = "Paging"
    LIMITS = "Limits"
    ITSELF = "The service itself"


def _setting(topic: Topic, default: Any, text: str, *, is_secret: bool = False) -> Any:
    told = {"topic": topic, "help": text, "is_secret": is_secret}
    return field(default=default, repr=not is_secret, metadata=told)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a service is started with."""

    host: str = _setting(Topic.DOORS, "127.0.0.1", "Address to listen on, for all three ports.")
    http_port: Port = _setting(Topic.DOORS, 4318, "OTLP over HTTP. 0 takes a free port.")
    grpc_port: Port = _setting(Topic.DOORS, 4317, "OTLP over gRPC. 0 takes a free port.")
    web_port: Port = _setting(
        Topic.DOORS, 9464, "Metrics, health and the API. 0 takes a free port."
    )

    tls_cert: Path | None = _setting(
        Topic.ACCESS, None, "PEM file with the certificate chain; needs tls_key."
    )
    tls_key: Path | None = _setting(
        Topic.ACCESS, None, "PEM file with the certificate's private key."
    )
    tls_client_ca: Path | None = _setting(
        Topic.ACCESS, None, "PEM file with the authorities a client's certificate must come from."
    )
    insecure_transport: bool = _setting(
        Topic.ACCESS, False, "Listen off loopback without TLS: tokens travel in the clear."
    )

    store: Path = _setting(Topic.STORE, Path("var/tailburn"), "Folder of the store.")
    state_url: str = _setting(
        Topic.STORE,
        "",
        "PostgreSQL database for the service's own state, `postgresql://USER@HOST/DATABASE`, "
        "instead of a file in the store.",
        is_secret=True,
    )
    pair: str = _setting(
        Topic.STORE,
        "",
        "Name of what this service and its standby have together in `state_url`: incidents, "
        "silences, changes, and which of them tells people.",
    )
    requests_kept_h: Hours = _setting(Topic.STORE, 2160.0, "How long requests are kept.")
    spans_kept_h: Hours = _setting(Topic.STORE, 168.0, "How long spans are kept.")
    rollups_kept_h: Hours = _setting(Topic.STORE, 9600.0, "How long minute rollups are kept.")
    signals_kept_h: Hours = _setting(Topic.STORE, 168.0, "How long engines' metrics are kept.")
    verdicts_kept_h: Annotated[float, Ge(768)] = _setting(
        Topic.STORE,
        9600.0,
        "How long each minute's verdicts of SLOs are kept, changes of their alerts and past "
        "definitions; at least 768, which budgets of 30 days rest on.",
    )
    spans_full_h: Hours = _setting(
        Topic.STORE,
        6.0,
        "How long every span is kept; later only those of slow, failed and sampled requests are.",
    )
    spans_sample_ratio: Annotated[float, Gt(0), Le(1)] = _setting(
        Topic.STORE, 0.05, "Share of the other traces whose spans are kept after that."
    )
    query_memory_bytes: Bytes = _setting(
        Topic.STORE, 1 << 30, "Memory that queries over the store may take."
    )

    hops_files: tuple[Path, ...] = _setting(
        Topic.RECOGNITION, (), "Your own rules for hops, before the shipped ones."
    )
    dimension_files: tuple[Path, ...] = _setting(
        Topic.RECOGNITION, (), "Your own rules for pool, request_type, priority and the like."
    )

    signals_files: tuple[Path, ...] = _setting(
        Topic.SIGNALS, (), "Your own names of metrics, before the shipped ones."
    )
    targets_files: tuple[Path, ...] = _setting(
        Topic.SIGNALS,
        (),
        "Targets whose metrics are read, in the form of Prometheus' file_sd; read again each time. "
        "A name may hold `*`.",
    )
    targets_http: tuple[str, ...] = _setting(
        Topic.SIGNALS,
        (),
        "Addresses that give lists of targets, in the form of Prometheus' http_sd.",
    )
    targets_dns: tuple[str, ...] = _setting(
        Topic.SIGNALS,
        (),
        "Targets by DNS: NAME:PORT or a URL, each address of the name is one.",
    )
    targets_kubernetes: bool = _setting(
        Topic.SIGNALS,
        False,
        "Read from pods annotated with `prometheus.io/scrape: true`, asked of the API server with "
        "the service account of this pod.",
    )
    targets_namespace: str | None = _setting(
        Topic.SIGNALS, None, "Only pods of this namespace. A service account may need it."
    )
    changes_kubernetes: bool = _setting(
        Topic.SIGNALS,
        False,
        "Note what the events of the API server tell of scaling and of pods that end, with the "
        "service account of this pod.",
    )
    signals_prometheus: str | None = _setting(
        Topic.SIGNALS, None, "Address of a Prometheus that has metrics of targets: asked for them."
    )
    signals_prometheus_token: Path | None = _setting(
        Topic.SIGNALS, None, "File with a bearer token for it, read each time."
    )
    scrape_interval_s: Seconds = _setting(
        Topic.SIGNALS, 15.0, "How often each target is read; targets are spread over this time."
    )
    scrape_timeout_s: Seconds = _setting(
        Topic.SIGNALS, 10.0, "How long a whole answer may take. At most the interval."
    )
    scrape_body_bytes: Bytes = _setting(
        Topic.SIGNALS, 32 << 20, "How large an answer may be, unpacked."
    )
    scrape_ca: Path | None = _setting(
        Topic.SIGNALS,
        None,
        "PEM file with the authorities that https targets and Prometheus are trusted by.",
    )
    scrape_tenant: str = _setting(
        Topic.SIGNALS, "default", "Tenant of what is read, where a target's labels name none."
    )

    idle_close_s: Seconds = _setting(
        Topic.REQUESTS,
        5.0,
        "A request closes this long after its last span, once its entry span has ended.",
    )
    rootless_close_s: Seconds = _setting(
        Topic.REQUESTS, 30.0, "The same, where the entry span never came."
    )
    hard_close_s: Seconds = _setting(
        Topic.REQUESTS,
        1800.0,
        "A request closes this long after its first span, come what may. Longer than the longest "
        "stream.",
    )

    slo: tuple[Path, ...] = _setting(
        Topic.SLOS, (), "Files or folders of SLOs whose verdicts are counted on `/metrics`."
    )
    scale_waiting: Annotated[float, Gt(0)] = _setting(
        Topic.SLOS, 5.0, "Requests in the queue of a replica, above which more are asked for."
    )
    scale_kv_ratio: Annotated[float, Gt(0), Le(1)] = _setting(
        Topic.SLOS,
        0.85,
        "Share of a replica's KV cache in use, above which more are asked for.",
    )

    alertmanagers: tuple[str, ...] = _setting(
        Topic.PAGING,
        (),
        "Addresses of Alertmanagers that are told of incidents, such as http://localhost:9093; "
        "each of several is told.",
    )
    page_to: tuple[str, ...] = _setting(
        Topic.PAGING,
        (),
        "Who is told of incidents that page, without an Alertmanager: pagerduty:FILE, slack:FILE "
        "or webhook:FILE, whose file holds the key or the address; email:ADDRESS.",
    )
    ticket_to: tuple[str, ...] = _setting(
        Topic.PAGING, (), "Who is told of incidents that do not page, written as page_to."
    )
    heartbeat_to: Path | None = _setting(
        Topic.PAGING,
        None,
        "File with an address that is called each minute while alerts are evaluated, so that "
        "somebody outside pages where the calls end.",
    )
    mail_server: str = _setting(Topic.PAGING, "localhost:25", "Where mail is handed in, HOST:PORT.")
    mail_from: str = _setting(Topic.PAGING, "tailburn@localhost", "Address that mail comes from.")
    mail_starttls: bool = _setting(Topic.PAGING, False, "Hand mail in encrypted, or not at all.")
    mail_login: Path | None = _setting(
        Topic.PAGING, None, "File with USER:PASSWORD for the mail server."
    )
    public_url: str | None = _setting(
        Topic.PAGING, None, "Address of the web port as people reach it: links of pages begin so."
    )

    in_flight_bytes: Bytes = _setting(
        Topic.LIMITS,
        256 << 20,
        "Bodies taken in and not yet durable; above it senders are asked to wait.",
    )
    open_spans_per_trace: Count = _setting(
        Topic.LIMITS, 32_768, "Spans held for one open trace; more are dropped and counted."
    )
    open_spans_per_tenant: Count = _setting(
        Topic.LIMITS, 2_000_000, "Spans held for one tenant's open traces."
    )
    open_spans: Count = _setting(Topic.LIMITS, 4_000_000, "Spans held for all open traces.")

    clock: Literal["wall", "telemetry"] = _setting(
        Topic.ITSELF,
        "wall",
        "Whose time is the receive time: this machine's, or the sender's "
        "header (for the lab only).",
    )
    trace_endpoint: str | None = _setting(
        Topic.ITSELF, None, "OTLP/HTTP address that gets the service's own traces."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        Topic.ITSELF, "info", "Lowest level written to standard error."
    )


@dataclass(frozen=True)
class Row:
    """One setting, as help, docs and error messages need it."""

    name: str
    type: Any  # with its bounds: an Annotated
    default: Any
    topic: Topic
    help: str
    is_secret: bool = False  # may hold a password: no message shows its value

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "TAILBURN_" + self.name.upper()

    @property
    def is_switch(self) -> bool:
        return self.type is bool

    @property
    def is_path(self) -> bool:
        return "Path" in str(self.type)

    @property
    def is_list(self) -> bool:
        return isinstance(self.default, tuple)

    @property
    def shown_default(self) -> str:
        """The default as a user would write it; empty for none."""
        if self.default is None or self.default == ():
            return ""
        return str(self.default).lower() if self.is_switch else str(self.default)

    @property
    def metavar(self) -> str:
        """The value's unit or kind, in the help."""
        units = {"_s": "SECONDS", "_h": "HOURS", "_bytes": "BYTES", "_port": "PORT"}
        by_unit = (unit for suffix, unit in units.items() if self.name.endswith(suffix))
        if choices := _choices(self.type):
            return "|".join(choices)
        kind = "NUMBER" if isinstance(self.default, int) else "PATH" if self.is_path else "TEXT"
        return next(by_unit, kind)

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if self.is_switch:
            return "true or false"
        if choices := _choices(self.type):
            return "one of " + ", ".join(choices)
        if isinstance(self.default, int | float):
            return _wanted_number(self.type, self.default)
        if self.is_list:
            return f"{'paths' if self.is_path else 'names'}, separated by commas"
        return "text"


def _choices(type_: Any) -> tuple[str, ...]:
    return type_.__args__ if getattr(type_, "__origin__", None) is Literal else ()


def _wanted_number(type_: Any, default: float) -> str:
    kind = "a whole number" if isinstance(default, int) else "a number"
    bounds = type_.__metadata__
    low = next((f" from {b.ge}" for b in bounds if isinstance(b, Ge)), "")
    above = next((f" above {b.gt}" for b in bounds if isinstance(b, Gt)), "")
    high = next((f" to {b.le}" for b in bounds if isinstance(b, Le)), "")
    return kind + (low + high if high else low + " on" if low else above)


_TYPES = get_type_hints(Settings, include_extras=True)
TABLE: tuple[Row, ...] = tuple(
    Row(f.name, _TYPES[f.name], f.default, **f.metadata) for f in fields(Settings)
)
