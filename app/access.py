"""Who may come in: tokens where there are any, this machine's own processes where not.

Without tokens only a loopback peer is admitted that asked for this machine by name, came
through no proxy and from no foreign web page: a proxy on the same host, or a page whose name
was rebound to 127.0.0.1, must not open the service to others. Once a token was added, revoked
or not, every request needs one: revoking the last must not let everybody in.
"""

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, Protocol

from sqlalchemy.exc import DBAPIError

from tailburn.app.errors import UserError
from tailburn.collector.doors.access import Headers, Refusal, Scope
from tailburn.engine.store.state.database import reason_of
from tailburn.engine.store.state.models import Token

log = logging.getLogger(__name__)

DEFAULT_TENANT: Final = "default"
REFRESH_S: Final = 0.5  # how long a revocation by another process may go unseen

_SECRET: Final = re.compile(rb"tb_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OWN_HOST: Final = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


class TokenRows(Protocol):
    """What the gate needs of `engine.store.state.tokens.Tokens`."""

    def all(self) -> Sequence[Token]: ...
    def mark_used(self, ids: Iterable[str], now_ns: int) -> None: ...


@dataclass(frozen=True)
class _Pass:
    """One live token, ready to compare."""

    hash: bytes
    tenant: str
    scopes: frozenset[str]


class Gate:
    """Decides for all three ports, in any thread.

    Tokens are held in memory, and who is asked never waits for the state database: somebody calls
    `refresh` every `REFRESH_S`. While it is away those hold that were read last.
    """

    def __init__(self, tokens: TokenRows) -> None:
        """Reads the tokens. Raises `DBAPIError`."""
        self._tokens = tokens
        self._needs_token = False
        self._passes: dict[bytes, _Pass] = {}
        self._used: set[str] = set()
        self._is_away = False
        self._read()

    def admit(
        self, peer: str | None, headers: Headers, scope: Scope, *, shows_host: bool = True
    ) -> str | Refusal:
        """The tenant, or a refusal: see `collector.doors.access.Gate`."""
        if self._needs_token:
            return self._by_token(headers, scope)
        reason = stranger(peer, headers, shows_host=shows_host)
        return DEFAULT_TENANT if reason is None else Refusal(True, reason)

    def record_use(self, now_ns: int) -> None:
        """Write down which tokens were used since the last call: once a minute will do."""
        if not self._used:
            return
        used, self._used = self._used, set()
        try:
            self._tokens.mark_used(used, now_ns)
        except DBAPIError:
            self._used |= used

    def refresh(self) -> None:
        """Read the tokens anew. A failure is said once, and the next call tries again."""
        try:
            self._read()
        except DBAPIError as error:
            if not self._is_away:
                log.error(
                    "tokens can't be read: those known go on, and a revocation is not seen until "
                    "they can: %s", reason_of(error),
                )  # fmt: skip
            self._is_away = True
        else:
            self._is_away = False

    def _read(self) -> None:
        rows = self._tokens.all()
        self._needs_token = bool(rows)
        self._passes = {
            row.id.encode(): _Pass(row.hash, row.tenant, frozenset(row.scopes.split()))
            for row in rows
            if row.revoked_ns is None
        }

    def _by_token(self, headers: Headers, scope: Scope) -> str | Refusal:
        given = [value for name, value in headers if name == b"authorization"]
        if not given:
            return Refusal(False, "a token is needed: send the header Authorization: Bearer tb_…")
        scheme, _, secret = given[0].partition(b" ")
        secret = secret.strip()
        form = _SECRET.fullmatch(secret)
        if len(given) > 1 or scheme.lower() != b"bearer" or form is None:
            return Refusal(False, "Authorization is not one Bearer token of the form tb_…")
        found = self._passes.get(form[1])
        if found is None or not hmac.compare_digest(hash_of(secret), found.hash):
            return Refusal(False, "this token is unknown or was revoked")
        if not found.scopes & {scope, Scope.ADMIN}:
            has = " ".join(sorted(found.scopes))
            return Refusal(True, f"this token has scope {has}, and {scope} is needed")
        self._used.add(form[1].decode())
        return found.tenant


def stranger(peer: str | None, headers: Headers, *, shows_host: bool = True) -> str | None:
    """Why a request without a token can't be trusted to come from this machine; None: it can."""
    if peer is None or not is_loopback(peer):
        return f"no token was ever added, so only this machine is served, and {peer} is not it"
    hosts = [value for name, value in headers if name == b"host"]
    if shows_host and (len(hosts) != 1 or _OWN_HOST.fullmatch(hosts[0]) is None):
        return "without tokens the Host must be localhost, 127.0.0.1 or [::1]"
    for name, value in headers:
        if name == b"forwarded" or name.startswith(b"x-forwarded-"):
            return f"without tokens nothing is taken from a proxy ({name.decode('latin-1')} is set)"
        if name == b"origin" and value.partition(b"://")[2] not in hosts:
            return "without tokens nothing is taken from another site's page (foreign Origin)"
    return None


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Of an address or `localhost`; any other name could point anywhere."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def check_exposure(
    host: str, *, has_tokens: bool, tls: bool, insecure_transport: bool
) -> str | None:
    """What to say loudly at the start, None where nothing needs saying.

    Raises UserError where listening on `host` would leave the service open.
    """
    if is_loopback(host):
        return None
    lines = []
    if not has_tokens:
        lines.append(
            f"host {host}: off loopback tokens are needed; see `tailburn token add --help`"
        )
    if not tls and not insecure_transport:
        lines.append(
            f"host {host}: off loopback TLS is needed; "
            "set tls_cert and tls_key, or insecure_transport to go without"
        )
    if lines:
        raise UserError(*lines)
    if tls:
        return None
    return f"INSECURE: listening on {host} without TLS; tokens and spans travel in the clear"


@dataclass(frozen=True)
class Issued:
    """A new token's row, and the secret that is shown once and kept nowhere."""

    token: Token
    secret: str


def issue(name: str, tenant: str, scopes: Iterable[Scope], now_ns: int) -> Issued:
    """A token of 256 random bits: plain SHA-256 is enough where nothing can be guessed.

    Raises UserError for a name or tenant that isn't plain, or no scope.
    """
    for what, value in (("name", name), ("tenant", tenant)):
        if _NAME.fullmatch(value) is None:
            raise UserError(
                f"{what} {value!r}: want 1 to 64 letters, digits, '.', '_' or '-', "
                "a letter or digit first"
            )
    if not (wanted := sorted(set(scopes))):
        raise UserError("scope: want at least one of " + ", ".join(Scope))
    token_id = secrets.token_hex(6)
    secret = f"tb_{token_id}_{secrets.token_urlsafe(32)}"
    token = Token(
        id=token_id,
        name=name,
        tenant=tenant,
        scopes=" ".join(wanted),
        hash=hash_of(secret.encode()),
        created_ns=now_ns,
    )
    return Issued(token, secret)


def hash_of(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
