"""E-mail: one thread for an incident, as plain text and the same as HTML."""

import contextlib
import hashlib
import html
import smtplib
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from tailburn.alerts.pager.page import DeliveryError, Page
from tailburn.alerts.pager.text import clean

TIMEOUT_S: Final = 10.0
_DOMAIN: Final = "tailburn.invalid"
"""Of message ids, which are no addresses (RFC 2606 keeps the name free)."""


@dataclass(frozen=True)
class Server:
    """Where mail is handed in. `starttls`: only where it is encrypted from there on."""

    host: str
    port: int = 25
    starttls: bool = False
    user: str = ""
    password: str = ""


class Email:
    """Mail to one address."""

    def __init__(self, name: str, server: Server, sender: str, to: str) -> None:
        """Raises ValueError for what is no address."""
        for address in (sender, to):
            if address.count("@") != 1 or any(c.isspace() or c in "<>,;" for c in address):
                raise ValueError("want an address such as oncall@example.com")
        self.name = name
        self._server = server
        self._sender = sender
        self._to = to

    def send(self, page: Page) -> None:
        """Raises DeliveryError."""
        try:
            smtp = smtplib.SMTP(self._server.host, self._server.port, timeout=TIMEOUT_S)
            try:
                self._hand_in(smtp, page)
            finally:
                _leave(smtp)
        except smtplib.SMTPResponseException as error:
            said = _said(error.smtp_error)
            raise self._refused(f"{error.smtp_code} {said}", error.smtp_code >= 500) from None
        except smtplib.SMTPRecipientsRefused as error:
            code, told = next(iter(error.recipients.values()))
            raise self._refused(f"{code} {_said(told)}", code >= 500) from None
        except (OSError, smtplib.SMTPException) as error:
            raise self._refused(clean(str(error), 200), False) from None

    def _hand_in(self, smtp: smtplib.SMTP, page: Page) -> None:
        server = self._server
        if server.starttls:
            smtp.starttls(context=ssl.create_default_context())
        if server.user:
            smtp.login(server.user, server.password)
        smtp.send_message(self.message(page))

    def message(self, page: Page) -> EmailMessage:
        """A header can't hold a line break, so nothing of a title becomes one."""
        message = EmailMessage()
        message["Subject"] = clean(page.title, 150)
        message["From"] = self._sender
        message["To"] = self._to
        message["Date"] = format_datetime(datetime.fromtimestamp(page.at_ns / 1e9, UTC))
        message["Message-ID"] = _id_of(page.id)
        thread = _id_of(page.key)
        message["In-Reply-To"] = thread
        message["References"] = thread
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(page.text)
        message.add_alternative(_html(page), subtype="html")
        return message

    def close(self) -> None:
        """Nothing is kept open."""

    def _refused(self, said: str, is_permanent: bool) -> DeliveryError:
        where = f"{self._server.host}:{self._server.port}"
        return DeliveryError(f"{where}: {said}".rstrip(), is_permanent=is_permanent)


def _id_of(text: str) -> str:
    """A message id may hold few characters; a hash holds only those."""
    return f"<{hashlib.sha256(text.encode()).hexdigest()[:32]}@{_DOMAIN}>"


def _leave(smtp: smtplib.SMTP) -> None:
    """Whatever is said to that, a mail that was taken is taken."""
    with contextlib.suppress(OSError, smtplib.SMTPException):
        smtp.quit()
    smtp.close()


def _said(told: bytes | str) -> str:
    return clean(told.decode(errors="replace") if isinstance(told, bytes) else told, 200)


def _html(page: Page) -> str:
    links = "".join(
        f'<p><a href="{html.escape(url)}">{html.escape(name)}</a></p>'
        for name, url in page.links.items()
        if url.startswith(("http://", "https://"))
    )
    return (
        '<!doctype html><meta name="viewport" content="width=device-width">'
        '<body style="font: 16px/1.45 sans-serif; margin: 16px; max-width: 40em">'
        f'<h1 style="font-size: 20px">{html.escape(page.title)}</h1>'
        f'<pre style="font: inherit; white-space: pre-wrap">{html.escape(page.text)}</pre>{links}'
    )
