"""Answers of the API as JSON, and what its paths may hold."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Path, Query, Response

Rows = Iterable[Mapping[str, Any]]

Number = Annotated[int, Path(ge=1, lt=2**31)]
"""Of an incident or a silence, as people call it."""

Before = Annotated[int, Query(ge=1, lt=2**31)]
"""The page before: of numbers lower than this one, the lowest that the last answer has."""


def json_answer(answer: Rows | Mapping[str, Any]) -> Response:
    """Rows as a list, a mapping as an object; nan becomes null."""
    value = answer if isinstance(answer, Mapping) else list(answer)
    return Response(msgspec.json.encode(value), media_type="application/json")
