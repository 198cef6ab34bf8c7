"""Requests as plain rows, oldest first; the field names are the columns of `requests`."""

from collections.abc import Iterator
from typing import Any

from tailburn.app.answers.question import Question
from tailburn.engine.schema import REQUESTS
from tailburn.engine.store.api import Store

# What identifies spans for the recognition of duplicates tells a reader nothing.
FIELDS = tuple(name for name in REQUESTS.names if name not in ("digests", "tombstone"))


def request_rows(
    store: Store, question: Question, limit: int | None = None
) -> Iterator[dict[str, Any]]:
    """The newest version of each request; the last `limit` of them. Raises StoreError."""
    found = store.requests(question.window, question.where, columns=FIELDS)
    ordered = found.sort_by([("start_ns", "ascending"), ("request_id", "ascending")])
    if limit is not None:
        ordered = ordered.slice(max(len(ordered) - limit, 0))
    for batch in ordered.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()
