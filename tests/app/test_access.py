"""Access: this machine's own processes without tokens, bearers with them, and the start."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from tailburn.app.access import (
    Gate,
    Issued,
    check_exposure,
    hash_of,
    is_loopback,
    issue,
    stranger,
)
from tailburn.app.errors import UserError
from tailburn.collector.doors.access import Headers, Refusal, Scope
from tailburn.collector.doors.grpc import GrpcDoor
from tailburn.collector.doors.http import otlp_front
from tailburn.collector.doors.limits import Limits
from tailburn.engine.store.state.database import open_state
from tailburn.engine.store.state.models import Token
from tailburn.engine.store.state.tokens import Tokens
from tests.collector.doors.support import Recorder, grpc_server, http_server, traces

LOCAL: Headers = ((b"host", b"localhost:4318"),)


@dataclass
class Rows:
    """Tokens in a list, with a count of how often they were read."""

    rows: list[Token] = field(default_factory=list)
    reads: int = 0
    used: list[tuple[set[str], int]] = field(default_factory=list)
    is_away: bool = False

    def all(self) -> list[Token]:
        self._ask()
        self.reads += 1
        return self.rows

    def _ask(self) -> None:
        if self.is_away:
            raise OperationalError("SELECT", None, ConnectionError("refused"))

    def mark_used(self, ids: object, now_ns: int) -> None:
        self._ask()
        self.used.append((set(ids), now_ns))  # type: ignore[call-overload]


def bearer(secret: str) -> Headers:
    return ((b"host", b"tail.example.org"), (b"authorization", f"Bearer {secret}".encode()))


def reason(answer: str | Refusal) -> str:
    assert isinstance(answer, Refusal)
    return answer.reason


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.7.6", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:4318", b"127.0.0.1", b"127.0.0.1:80", b"[::1]", b"[::1]:1"]
)
def test_without_tokens_this_machines_own_processes_are_served(peer: str, host: bytes) -> None:
    assert Gate(Rows()).admit(peer, ((b"host", host),), Scope.ADMIN) == "default"


@pytest.mark.parametrize(
    "peer", [None, "192.0.2.7", "10.0.0.1", "::2", "::ffff:192.0.2.7", "localhost.evil.org", ""]
)
def test_without_tokens_nobody_else_is(peer: str | None) -> None:
    answer = Gate(Rows()).admit(peer, LOCAL, Scope.INGEST)

    assert isinstance(answer, Refusal) and answer.known
    assert "only this machine is served" in answer.reason


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((b"host", b""),),
        ((b"host", b"rebound.example.org"),),
        ((b"host", b"localhost.example.org"),),
        ((b"host", b"127.0.0.1.nip.io"),),
        ((b"host", b"localhost:4318@evil.org"),),
        ((b"host", b"127.0.0.2"),),
        ((b"host", b"0.0.0.0:4318"),),
        ((b"host", b"localhost"), (b"host", b"localhost")),
    ],
)
def test_a_rebound_name_does_not_open_it(headers: Headers) -> None:
    assert "Host must be localhost" in (stranger("127.0.0.1", headers) or "")


@pytest.mark.parametrize(
    "name", [b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"]
)
@pytest.mark.parametrize("shows_host", [True, False])
def test_a_proxy_on_the_same_host_does_not_open_it(name: bytes, shows_host: bool) -> None:
    headers = (*LOCAL, (name, b"for=192.0.2.7"))

    refused = stranger("127.0.0.1", headers, shows_host=shows_host)
    assert refused == f"without tokens nothing is taken from a proxy ({name.decode()} is set)"


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        (b"http://localhost:4318", True),
        (b"https://localhost:4318", True),
        (b"http://localhost:3000", False),
        (b"http://evil.example.org", False),
        (b"http://localhost:4318.evil.org", False),
        (b"null", False),
        (b"", False),
    ],
)
def test_only_its_own_pages_are_served(origin: bytes, own: bool) -> None:
    refused = stranger("127.0.0.1", (*LOCAL, (b"origin", origin)))

    assert (refused is None) is own


def test_grpc_can_not_show_the_host_and_is_judged_by_the_rest() -> None:
    assert stranger("127.0.0.1", (), shows_host=False) is None
    assert stranger("192.0.2.7", (), shows_host=False) is not None
    assert stranger("127.0.0.1", ((b"origin", b"http://x"),), shows_host=False) is not None


@pytest.mark.parametrize(
    ("granted", "needed", "admitted"),
    [
        ([Scope.INGEST], Scope.INGEST, True),
        ([Scope.INGEST], Scope.READ, False),
        ([Scope.READ], Scope.RESPOND, False),
        ([Scope.READ, Scope.RESPOND], Scope.RESPOND, True),
        ([Scope.ADMIN], Scope.INGEST, True),
        ([Scope.ADMIN], Scope.READ, True),
        ([Scope.ADMIN], Scope.RESPOND, True),
        ([Scope.ADMIN], Scope.ADMIN, True),
        ([Scope.INGEST, Scope.READ, Scope.RESPOND], Scope.ADMIN, False),
    ],
)
def test_a_token_opens_what_its_scopes_say(
    granted: list[Scope], needed: Scope, admitted: bool
) -> None:
    issued = issue("ci", "acme", granted, 11)

    answer = Gate(Rows([issued.token])).admit("192.0.2.7", bearer(issued.secret), needed)

    if admitted:
        assert answer == "acme"
    else:
        assert isinstance(answer, Refusal) and answer.known
        assert f"{needed} is needed" in answer.reason


def test_with_tokens_this_machine_needs_one_too() -> None:
    gate = Gate(Rows([issue("ci", "acme", [Scope.ADMIN], 11).token]))

    answer = gate.admit("127.0.0.1", LOCAL, Scope.READ)

    assert isinstance(answer, Refusal) and not answer.known
    assert "Authorization: Bearer tb_" in answer.reason


def wrong_tokens(issued: Issued) -> dict[str, bytes]:
    good = issued.secret
    other = issue("other", "acme", [Scope.ADMIN], 12).secret
    return {
        "unknown": f"Bearer {other}".encode(),
        "one digit off": f"Bearer {good[:-1]}{'A' if good[-1] != 'A' else 'B'}".encode(),
        "another's secret": f"Bearer {good[:16]}{other[16:]}".encode(),
        "cut": f"Bearer {good[:-1]}".encode(),
        "longer": f"Bearer {good}A".encode(),
        "no scheme": good.encode(),
        "basic": f"Basic {good}".encode(),
        "empty": b"",
        "no bytes of text": b"Bearer \xff\xfe",
        "its hash": b"Bearer " + issued.token.hash,
    }


@pytest.mark.parametrize("case", wrong_tokens(issue("ci", "acme", [Scope.ADMIN], 11)))
def test_a_wrong_token_opens_nothing(case: str) -> None:
    issued = issue("ci", "acme", [Scope.ADMIN], 11)
    headers = (*LOCAL, (b"authorization", wrong_tokens(issued)[case]))

    answer = Gate(Rows([issued.token])).admit("127.0.0.1", headers, Scope.INGEST)

    assert isinstance(answer, Refusal) and not answer.known
    assert issued.secret not in answer.reason


def test_two_authorizations_are_none() -> None:
    issued = issue("ci", "acme", [Scope.ADMIN], 11)
    headers = (*bearer(issued.secret), *bearer(issued.secret))

    assert isinstance(Gate(Rows([issued.token])).admit("::1", headers, Scope.READ), Refusal)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_the_scheme_may_be_written_as_http_allows(scheme: str) -> None:
    issued = issue("ci", "acme", [Scope.READ], 11)
    headers = ((b"authorization", f"{scheme} {issued.secret}".encode()),)

    assert Gate(Rows([issued.token])).admit("::1", headers, Scope.READ) == "acme"


def test_a_proxy_may_stand_before_a_service_with_tokens() -> None:
    issued = issue("ci", "acme", [Scope.INGEST], 11)
    headers = (*bearer(issued.secret), (b"x-forwarded-for", b"192.0.2.7"))

    assert Gate(Rows([issued.token])).admit("10.0.0.1", headers, Scope.INGEST) == "acme"


def test_revoking_is_seen_once_tokens_are_read_anew_and_does_not_open_the_door() -> None:
    issued = issue("ci", "acme", [Scope.INGEST], 11)
    gate = Gate(Rows([issued.token]))
    assert gate.admit("127.0.0.1", bearer(issued.secret), Scope.INGEST) == "acme"

    issued.token.revoked_ns = 12
    gate.refresh()

    refused = gate.admit("127.0.0.1", bearer(issued.secret), Scope.INGEST)
    assert "unknown or was revoked" in reason(refused)
    assert isinstance(gate.admit("127.0.0.1", LOCAL, Scope.INGEST), Refusal)


def test_a_first_token_closes_an_open_door() -> None:
    rows = Rows()
    gate = Gate(rows)
    assert gate.admit("127.0.0.1", LOCAL, Scope.READ) == "default"

    rows.rows = [issue("ci", "acme", [Scope.INGEST], 11).token]
    gate.refresh()

    assert isinstance(gate.admit("127.0.0.1", LOCAL, Scope.READ), Refusal)


def test_a_flood_of_unknown_tokens_costs_no_reads_and_no_memory() -> None:
    rows = Rows([issue("ci", "acme", [Scope.INGEST], 11).token])
    gate = Gate(rows)

    for i in range(1000):
        headers = bearer(f"tb_{i:012x}_{'A' * 43}")
        assert isinstance(gate.admit(f"192.0.{i // 256}.{i % 256}", headers, Scope.READ), Refusal)

    assert rows.reads == 1
    assert is_loopback.cache_info().currsize <= 1024


def test_while_the_database_is_away_the_tokens_that_are_known_hold(
    caplog: pytest.LogCaptureFixture,
) -> None:
    issued = issue("ci", "acme", [Scope.INGEST], 11)
    rows = Rows([issued.token])
    gate = Gate(rows)

    rows.is_away = True
    for _ in range(3):
        gate.refresh()
        assert gate.admit("::1", bearer(issued.secret), Scope.INGEST) == "acme"
    gate.record_use(31)
    rows.is_away = False
    gate.refresh()
    gate.record_use(32)

    assert [record.message.split(":")[0] for record in caplog.records] == ["tokens can't be read"]
    assert rows.used == [({issued.token.id}, 32)]


def test_use_is_recorded_once_for_each_token_used() -> None:
    one, two = (issue(name, "acme", [Scope.INGEST], 11) for name in ("one", "two"))
    rows = Rows([one.token, two.token])
    gate = Gate(rows)

    for _ in range(3):
        gate.admit("::1", bearer(one.secret), Scope.INGEST)
    gate.admit("::1", bearer(two.secret), Scope.ADMIN)  # refused
    gate.record_use(31)
    gate.record_use(32)

    assert rows.used == [({one.token.id}, 31)]


def test_a_secret_is_256_random_bits_and_only_its_hash_is_kept() -> None:
    first, second = (issue("ci", "acme", [Scope.READ, Scope.INGEST], 11) for _ in range(2))

    assert first.secret != second.secret
    assert len(first.secret.split("_", 2)[2]) == 43  # 256 bits in base64
    assert first.token.hash == hash_of(first.secret.encode())
    assert first.token.scopes == "ingest read"
    kept = {str(getattr(first.token, column.key)) for column in Token.__table__.columns}
    assert not any(first.secret[16:] in value for value in kept)


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "ä", "x" * 65, "a\n", "a/b", "\x1b]8;;"])
def test_names_and_tenants_are_plain(name: str) -> None:
    with pytest.raises(UserError, match="want 1 to 64 letters"):
        issue(name, "acme", [Scope.READ], 11)
    with pytest.raises(UserError, match="tenant"):
        issue("ci", name, [Scope.READ], 11)


@given(st.text(max_size=30))
def test_no_host_but_our_own_three_passes(host: str) -> None:
    bare = host.lower().rsplit(":", 1)[0] if not host.endswith("]") else host.lower()
    if bare in ("localhost", "127.0.0.1", "[::1]"):
        return
    headers = ((b"host", host.encode("utf-8", "surrogatepass")),)
    assert stranger("127.0.0.1", headers) is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.53"])
def test_on_loopback_nothing_needs_saying(host: str) -> None:
    warning = check_exposure(host, has_tokens=False, tls=False, insecure_transport=False)

    assert warning is None


def test_off_loopback_all_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(UserError) as caught:
        check_exposure("0.0.0.0", has_tokens=False, tls=False, insecure_transport=False)

    tokens, tls = caught.value.lines
    assert "tailburn token add" in tokens
    assert "tls_cert" in tls and "insecure_transport" in tls


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "tail.example.org", "", "0"])
@pytest.mark.parametrize("has_tokens", [False, True])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("insecure", [False, True])
def test_off_loopback_takes_tokens_and_tls_or_a_loud_word(
    host: str, has_tokens: bool, tls: bool, insecure: bool
) -> None:
    if not has_tokens or not (tls or insecure):
        with pytest.raises(UserError):
            check_exposure(host, has_tokens=has_tokens, tls=tls, insecure_transport=insecure)
        return
    warning = check_exposure(host, has_tokens=True, tls=tls, insecure_transport=insecure)
    assert (warning is None) is tls
    assert tls or "INSECURE" in (warning or "")


def test_the_same_tokens_work_and_fail_alike_on_both_doors(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state.sqlite")
    tokens = Tokens(state)
    acme = issue("acme", "acme", [Scope.INGEST], 11)
    reader = issue("reader", "acme", [Scope.READ], 12)
    for issued in (acme, reader):
        tokens.add(issued.token)
    accept = Recorder()
    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

    async def talk(http_port: int, grpc_port: int, headers: dict[str, str]) -> tuple[int, str]:
        async with httpx.AsyncClient() as http:
            response = await http.post(
                f"http://127.0.0.1:{http_port}/v1/traces",
                content=traces("one"),
                headers={"content-type": "application/x-protobuf", **headers},
            )
        async with grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            call = channel.unary_unary(path)(
                traces("one"), metadata=tuple(headers.items()), timeout=20
            )
            return response.status_code, (await call.code()).name

    async def run() -> list[tuple[int, str]]:
        gate = Gate(tokens)
        front = otlp_front(accept, gate, Limits(), None)
        door = GrpcDoor(accept, gate, Limits())
        async with http_server(front) as http_port, grpc_server(door) as grpc_port:
            return [
                await talk(http_port, grpc_port, headers)
                for headers in (
                    {"authorization": f"Bearer {acme.secret}"},
                    {"authorization": f"Bearer {reader.secret}"},
                    {"authorization": f"Bearer {acme.secret[:-1]}"},
                    {},
                )
            ]

    answers = asyncio.run(run())
    state.close()

    assert answers == [
        (200, "OK"),
        (403, "PERMISSION_DENIED"),
        (401, "UNAUTHENTICATED"),
        (401, "UNAUTHENTICATED"),
    ]
    assert [taken.tenant for taken in accept.taken] == ["acme", "acme"]
