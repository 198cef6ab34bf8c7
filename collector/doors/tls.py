"""TLS and mutual TLS of both doors, from the same three PEM files."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict


class TlsError(Exception):
    """A file is missing, unreadable, or is not what it is given as."""


class UvicornTls(TypedDict, total=False):
    """uvicorn's arguments for TLS."""

    ssl_certfile: str
    ssl_keyfile: str
    ssl_ca_certs: str
    ssl_cert_reqs: int


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files. With `client_ca`, a client must show a certificate from there."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def check(self) -> None:
        """Raises TlsError where a server could not start with these files."""
        for path in filter(None, (self.cert, self.key, self.client_ca)):
            read_pem(path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert, self.key)
        except ssl.SSLError as error:
            raise TlsError(f"{self.cert} and {self.key} are no pair: {error}") from error
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except ssl.SSLError as error:
                raise TlsError(f"{self.client_ca} holds no certificate: {error}") from error


def read_pem(path: Path) -> bytes:
    """The file's bytes. Raises TlsError naming it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path} can't be read: {error.strerror}") from error


def uvicorn_tls(tls: Tls | None) -> UvicornTls:
    """Arguments for `uvicorn.Config`; none without TLS."""
    if tls is None:
        return {}
    arguments: UvicornTls = {"ssl_certfile": str(tls.cert), "ssl_keyfile": str(tls.key)}
    if tls.client_ca is not None:
        arguments["ssl_ca_certs"] = str(tls.client_ca)
        arguments["ssl_cert_reqs"] = ssl.CERT_REQUIRED
    return arguments
