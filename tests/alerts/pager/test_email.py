"""Mail as a server receives it: a thread for an incident, no header of telemetry's, refusals."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest

from tailburn.alerts.pager.email import Email, Server
from tailburn.alerts.pager.page import DeliveryError
from tailburn.engine.incidents import What
from tests.alerts.pager.pages import page


class Mailbox:
    """What one call left; `answers` by the first word of a command, where it is not 250."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.data = b""

    @property
    def message(self) -> EmailMessage:
        found = message_from_bytes(self.data, policy=policy.default)
        assert isinstance(found, EmailMessage)
        return found

    def serve(self, listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb") as lines:
            self._say(lines, "220 mail")
            for line in lines:
                word = line.split()[0].decode().upper() if line.split() else ""
                self._say(lines, self.answers.get(word, "354 go" if word == "DATA" else "250 ok"))
                if word == "DATA" and "DATA" not in self.answers:
                    for part in lines:
                        if part == b".\r\n":
                            break
                        self.data += part
                    self._say(lines, self.answers.get("END", "250 taken"))
                if word == "QUIT":
                    return

    def _say(self, lines: Any, text: str) -> None:
        lines.write(text.encode() + b"\r\n")
        lines.flush()


@contextmanager
def receiving(**answers: str) -> Iterator[tuple[Email, Mailbox]]:
    mailbox = Mailbox(answers)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=mailbox.serve, args=(listening,))
        thread.start()
        server = Server("127.0.0.1", listening.getsockname()[1])
        yield Email("mail", server, "tailburn@example.com", "oncall@example.com"), mailbox
        thread.join(20)
        assert not thread.is_alive()


def test_a_page_is_a_mail_of_its_incident_s_thread() -> None:
    with receiving() as (mail, mailbox):
        mail.send(page(what=What.TRIGGER, text="Since 03:00: ttft <b>"))
    message = mailbox.message
    assert message["Subject"] == "chat burns 12x too fast"
    assert (message["From"], message["To"]) == ("tailburn@example.com", "oncall@example.com")
    assert re.fullmatch(r"<[0-9a-f]{32}@tailburn\.invalid>", message["Message-ID"])
    assert message["In-Reply-To"] == message["References"] != message["Message-ID"]
    plain, shown = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None and plain.get_content().strip() == "Since 03:00: ttft <b>"
    assert shown is not None and "ttft &lt;b&gt;" in shown.get_content()
    assert 'href="http://t/incidents/1"' in shown.get_content()


def test_the_same_message_has_the_same_id_and_its_incident_the_same_thread() -> None:
    mail = Email("mail", Server("localhost"), "a@example.com", "b@example.com")
    first, again = mail.message(page()), mail.message(page())
    other = mail.message(page(id="webhook:/etc/a b@c"))
    assert first["Message-ID"] == again["Message-ID"] != other["Message-ID"]
    assert first["References"] == other["References"]


def test_a_mail_that_was_taken_is_taken_however_the_server_takes_its_leave() -> None:
    for farewell in ("221 bye", "250 ok", "500 what"):
        with receiving(QUIT=farewell) as (mail, mailbox):
            mail.send(page())
        assert mailbox.data


def test_a_title_adds_no_header_and_a_link_no_script() -> None:
    bad = page(title="a\r\nBcc: x@evil", links={"x": "javascript:alert(1)"})
    with receiving() as (mail, mailbox):
        mail.send(bad)
    assert mailbox.message["Bcc"] is None
    assert mailbox.message["Subject"] == "a Bcc: x@evil"
    assert b"javascript" not in mailbox.data


@pytest.mark.parametrize(
    ("answers", "is_permanent", "says"),
    [
        ({"RCPT": "550 no such user"}, True, "550 no such user"),
        ({"RCPT": "450 busy"}, False, "450 busy"),
        ({"MAIL": "553 not you"}, True, "553 not you"),
        ({"END": "451 disk full"}, False, "451 disk full"),
        ({"EHLO": "421 closing", "HELO": "421 closing"}, False, "421 closing"),
    ],
)
def test_what_is_refused_says_why(answers: dict[str, str], is_permanent: bool, says: str) -> None:
    with receiving(**answers) as (mail, _), pytest.raises(DeliveryError) as error:
        mail.send(page())
    assert str(error.value).startswith("127.0.0.1:") and says in str(error.value)
    assert error.value.is_permanent is is_permanent


def test_nobody_there_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        server = Server("127.0.0.1", closed.getsockname()[1])
    with pytest.raises(DeliveryError) as error:
        Email("mail", server, "a@example.com", "b@example.com").send(page())
    assert not error.value.is_permanent


@pytest.mark.parametrize("address", ["oncall", "a@b@c", "a@b, c@d", "a@b\r\nBcc: c@d", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="want an address"):
        Email("mail", Server("localhost"), "a@example.com", address)
