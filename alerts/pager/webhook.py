"""Any receiver of JSON: the page as it is, with its id as the idempotency key."""

from dataclasses import asdict

from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import Page


class Webhook:
    """Posts each page to one address."""

    def __init__(self, name: str, poster: Poster) -> None:
        self.name = name
        self._poster = poster

    def send(self, page: Page) -> None:
        """Raises DeliveryError."""
        self._poster.post(asdict(page), {"idempotency-key": page.id})

    def close(self) -> None:
        self._poster.close()
