"""Silences over HTTP: what there are, a new one, the end of one (scope `respond`)."""

import time
from typing import Annotated

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tailburn.alerts.incidents.acting import MOST_NAME, MOST_TEXT
from tailburn.alerts.silences.matching import MOST_MATCHERS, MatcherError, new_silence
from tailburn.app.answers.silences import silence_row
from tailburn.app.guard import seen_tenant
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.web_json import Number, json_answer
from tailburn.collector.doors.access import Gate

Moment = Annotated[int, Field(ge=0, lt=2**63)]


class Wanted(BaseModel):
    """A silence; without a start it begins now. Times are of the wall clock, ns."""

    model_config = ConfigDict(extra="forbid")

    matchers: Annotated[list[str], Field(min_length=1, max_length=MOST_MATCHERS)]
    ends_unix_ns: Moment
    starts_unix_ns: Moment | None = None
    who: Annotated[str, Field(min_length=1, max_length=MOST_NAME)]
    why: Annotated[str, Field(max_length=MOST_TEXT)] = ""


def silence_routes(keeping: IncidentKeeping, gate: Gate) -> APIRouter:
    """`/api/silences`. They hold for all tenants, so they are an admin's."""
    routes = APIRouter(prefix="/api/silences")

    def check(request: Request) -> None:
        if seen_tenant(request, gate) is not None:
            raise HTTPException(403, "silences are of all tenants: they need scope admin")

    @routes.get("")
    def silences(request: Request, all: bool = False) -> Response:
        check(request)
        now_ns = time.time_ns()
        found = keeping.silences.all(0 if all else now_ns)
        return json_answer([silence_row(silence, now_ns) for silence in found])

    @routes.post("")
    def add(request: Request, wanted: Wanted) -> Response:
        check(request)
        now_ns = time.time_ns()
        starts_ns = now_ns if wanted.starts_unix_ns is None else wanted.starts_unix_ns
        try:
            made = new_silence(
                wanted.matchers, starts_ns, wanted.ends_unix_ns, wanted.who, wanted.why
            )
        except MatcherError as error:
            raise HTTPException(422, str(error)) from None
        return json_answer(silence_row(keeping.silences.add(made), now_ns))

    @routes.post("/{number}/end")
    def end(request: Request, number: Number) -> Response:
        check(request)
        now_ns = time.time_ns()
        ended = keeping.silences.end(number, now_ns)
        if ended is None:
            raise HTTPException(404, f"no silence {number}")
        return json_answer(silence_row(ended, now_ns))

    return routes
