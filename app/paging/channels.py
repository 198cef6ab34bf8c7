"""The channels and Alertmanagers of the settings, with their secrets read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailburn.alerts.pager.alertmanager import Alertmanager
from tailburn.alerts.pager.email import Email, Server
from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import Channel
from tailburn.alerts.pager.pagerduty import EVENTS_URL, PagerDuty
from tailburn.alerts.pager.slack import Slack
from tailburn.alerts.pager.webhook import Webhook
from tailburn.app.errors import UserError
from tailburn.app.settings import Settings

_WANTED: Final = "want pagerduty:FILE, slack:FILE, webhook:FILE or email:ADDRESS"
_MOST_SECRET_BYTES: Final = 4_096


@dataclass(frozen=True)
class People:
    """Who is told: by channels, and by Alertmanagers."""

    channels: Sequence[Channel]
    alertmanagers: Sequence[Alertmanager]
    heartbeat: Poster | None = None

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        for alertmanager in self.alertmanagers:
            alertmanager.close()
        if self.heartbeat is not None:
            self.heartbeat.close()


def people_of(settings: Settings) -> People:
    """Raises UserError for a way or an address that is none, and a file without a secret."""
    ways = dict.fromkeys([*settings.page_to, *settings.ticket_to])
    channels = [_channel(settings, way) for way in ways]
    return People(channels, _alertmanagers(settings), _heartbeat(settings))


def _heartbeat(settings: Settings) -> Poster | None:
    if settings.heartbeat_to is None:
        return None
    try:
        return Poster(_secret(settings.heartbeat_to))
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"heartbeat_to: {settings.heartbeat_to}: {told}") from None


def _alertmanagers(settings: Settings) -> list[Alertmanager]:
    found = []
    for url in settings.alertmanagers:
        try:
            found.append(Alertmanager(url))
        except ValueError as error:
            raise UserError(f"alertmanagers: {url}: {error}") from None
    return found


def _channel(settings: Settings, way: str) -> Channel:
    kind, _, of = way.partition(":")
    setting = "page_to" if way in settings.page_to else "ticket_to"
    if kind not in (*_KINDS, "email") or not of:
        raise UserError(f"{setting}: {way}: {_WANTED}")
    try:
        if kind == "email":
            return Email(way, _mail_server(settings), settings.mail_from, of)
        return _KINDS[kind](way, _secret(Path(of)))
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{setting}: {way}: {told}") from None


def _mail_server(settings: Settings) -> Server:
    """Raises OSError, and ValueError for what is no address of a server, and no login."""
    host, _, port = settings.mail_server.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"mail_server: {settings.mail_server}: want HOST:PORT")
    user = password = ""
    if settings.mail_login is not None:
        user, colon, password = _secret(settings.mail_login).partition(":")
        if not colon:
            raise ValueError("mail_login: want a file with one line: USER:PASSWORD")
    return Server(host.strip("[]"), int(port), settings.mail_starttls, user, password)


def _secret(path: Path) -> str:
    """The one line of a file. Raises OSError, and ValueError where there is none."""
    with path.open("rb") as file:
        text = file.read(_MOST_SECRET_BYTES).decode(errors="replace").strip()
    if not text or any(c.isspace() for c in text):
        raise ValueError("want a file with one line: the key or the address")
    return text


def _pagerduty(name: str, secret: str) -> Channel:
    return PagerDuty(name, secret, Poster(EVENTS_URL))


def _slack(name: str, secret: str) -> Channel:
    return Slack(name, Poster(secret))


def _webhook(name: str, secret: str) -> Channel:
    return Webhook(name, Poster(secret))


_KINDS: Final[Mapping[str, Callable[[str, str], Channel]]] = {
    "pagerduty": _pagerduty,
    "slack": _slack,
    "webhook": _webhook,
}
