"""Answers that say what is wrong: problem details (RFC 9457), in one form for all of the API."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException

from tailburn.app.errors import UserError
from tailburn.engine.store.api import StoreError
from tailburn.engine.store.state.database import reason_of

MEDIA_TYPE: Final = "application/problem+json"
_AGAIN_S: Final = "5"


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """`detail`: one line for people; `more`: members beside those of the RFC."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return Response(msgspec.json.encode(body), status, dict(headers or {}), MEDIA_TYPE)


def add_problems(app: FastAPI) -> None:
    """Have every error of its routes answered so."""
    app.add_exception_handler(UserError, _bad_request)
    app.add_exception_handler(StoreError, _bad_request)
    app.add_exception_handler(DBAPIError, _away)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(RequestValidationError, _not_fit)


async def _bad_request(request: Request, error: Exception) -> Response:
    lines = error.lines if isinstance(error, UserError) else (str(error),)
    return problem(400, "; ".join(lines))


async def _away(request: Request, error: Exception) -> Response:
    """The state database; telemetry is taken all the same."""
    assert isinstance(error, DBAPIError)
    told = f"the state database is away: {reason_of(error)}"
    return problem(503, told, {"retry-after": _AGAIN_S})


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), error.headers)


async def _not_fit(request: Request, error: Exception) -> Response:
    """What was sent; each error with where it is, as pydantic names it."""
    assert isinstance(error, RequestValidationError)
    errors = [
        {"where": ".".join(map(str, one["loc"])), "what": str(one["msg"])} for one in error.errors()
    ]
    told = "; ".join(f"{one['where']}: {one['what']}" for one in errors)
    return problem(422, told, errors=errors)
