"""The channels and Alertmanagers of the settings, with their secrets read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailburn.alerts.pager.alertmanager import ALERTNAME, Alertmanager
from tailburn.alerts.pager.email import Email, Server
from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import Channel
from tailburn.alerts.pager.pagerduty import EVENTS_URL, PagerDuty
from tailburn.alerts.pager.slack import Slack
from tailburn.alerts.pager.webhook import Webhook
from tailburn.alerts.silences.theirs import TheirSilences
from tailburn.app.errors import UserError
from tailburn.app.settings import Settings

_WANTED: Final = "want pagerduty:FILE, slack:FILE, webhook:FILE or email:ADDRESS"
_MOST_SECRET_BYTES: Final = 4_096


@dataclass(frozen=True)
class People:
    """Who is told: by channels, and by Alertmanagers."""

    channels: Sequence[Channel]
    alertmanagers: Sequence[Alertmanager]
    silences: Sequence[TheirSilences] = ()
    """Of the same Alertmanagers."""
    heartbeat: Poster | None = None

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        for alertmanager in self.alertmanagers:
            alertmanager.close()
        for silences in self.silences:
            silences.close()
        if self.heartbeat is not None:
            self.heartbeat.close()


def people_of(settings: Settings) -> People:
    """Raises UserError for a way or an address that is none, and a file without a secret."""
    ways = dict.fromkeys([*settings.page_to, *settings.ticket_to])
    channels = [_channel(settings, way) for way in ways]
    alertmanagers = _alertmanagers(settings)
    silences = [TheirSilences(url, ALERTNAME) for url in settings.alertmanagers]
    return People(channels, alertmanagers, silences, _heartbeat(settings))


@contextmanager
def _of_setting(name: str) -> Iterator[None]:
    """What is wrong is said with the setting that it is of. Raises UserError."""
    try:
        yield
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{name}: {told}") from None


def _heartbeat(settings: Settings) -> Poster | None:
    if settings.heartbeat_to is None:
        return None
    with _of_setting(f"heartbeat_to: {settings.heartbeat_to}"):
        return Poster(_secret(settings.heartbeat_to))


def _alertmanagers(settings: Settings) -> list[Alertmanager]:
    found = []
    for url in settings.alertmanagers:
        with _of_setting(f"alertmanagers: {url}"):
            found.append(Alertmanager(url))
    return found


def _channel(settings: Settings, way: str) -> Channel:
    kind, _, of = way.partition(":")
    setting = "page_to" if way in settings.page_to else "ticket_to"
    with _of_setting(f"{setting}: {way}"):
        if kind not in _KINDS or not of:
            raise ValueError(_WANTED)
        return _KINDS[kind](settings, way, of)


def _pagerduty(settings: Settings, name: str, file: str) -> Channel:
    return PagerDuty(name, _secret(Path(file)), Poster(EVENTS_URL))


def _slack(settings: Settings, name: str, file: str) -> Channel:
    return Slack(name, Poster(_secret(Path(file))))


def _webhook(settings: Settings, name: str, file: str) -> Channel:
    return Webhook(name, Poster(_secret(Path(file))))


def _email(settings: Settings, name: str, address: str) -> Channel:
    return Email(name, _mail_server(settings), settings.mail_from, address)


_KINDS: Final[Mapping[str, Callable[[Settings, str, str], Channel]]] = {
    "pagerduty": _pagerduty,
    "slack": _slack,
    "webhook": _webhook,
    "email": _email,
}


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
