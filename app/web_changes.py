"""Changes of the fleet over HTTP: what there were, and a new one (scope `respond`)."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tailburn.app.answers.changes import change_row, checked, kind_of
from tailburn.app.answers.question import question
from tailburn.app.guard import seen_tenant, tenant_of
from tailburn.app.web_json import json_answer
from tailburn.collector.doors.access import Gate
from tailburn.engine.changes import Change
from tailburn.engine.store.state.changes import Changes

MOST_CHANGES = 10_000


class Told(BaseModel):
    """A change; without a time it is made now."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    what: str
    old: str = ""
    new: str = ""
    where: dict[str, str] = {}
    at_ns: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    who: str = ""
    link: str = ""


def change_routes(changes: Changes, gate: Gate, now_ns: Callable[[], int]) -> APIRouter:
    """`/api/changes`. A change is its teller's tenant's; an admin sees all."""
    routes = APIRouter(prefix="/api/changes")

    @routes.get("")
    def found(
        request: Request,
        since: str | None = None,
        until: str | None = None,
        where: Annotated[list[str] | None, Query()] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_CHANGES)] = 1_000,
    ) -> Response:
        asked = question(since, until, None, where or (), now_ns())
        window, tenant = asked.window, seen_tenant(request, gate)
        some = changes.all(window.since_ns, window.until_ns, asked.where, tenant, limit)
        return json_answer([change_row(change) for change in some])

    @routes.post("")
    def add(request: Request, told: Told) -> Response:
        at_ns = now_ns() if told.at_ns is None else told.at_ns
        change = Change(
            at_ns, kind_of(told.kind), told.what, told.old, told.new, told.where, told.who,
            told.link, tenant_of(request),
        )  # fmt: skip
        return json_answer(change_row(changes.add(checked(change))))

    return routes
