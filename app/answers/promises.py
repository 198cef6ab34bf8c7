"""The budgets that are in force: from SLOs that are loaded, or as the state database keeps them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Calendar, Rolling, Slo, Window, objectives
from tailburn.engine.store.state.models import SloVersion


@dataclass(frozen=True)
class Promise:
    """One budget of one SLO; `tenant` where the SLO selects one."""

    slo: str
    objective: str
    definition: str
    budget_ratio: float
    threshold_s: float | None
    window: Window
    by: tuple[str, ...]
    tenant: str | None


def promises_of(slos: Iterable[Slo]) -> list[Promise]:
    """Those that this service counts itself, in the order of the files."""
    return [
        Promise(
            slo=slo.name,
            objective=objective.name,
            definition=definition_of(slo, objective),
            budget_ratio=objective.budget_ratio,
            threshold_s=objective.threshold_s,
            window=slo.window,
            by=slo.by,
            tenant=slo.select.get("tenant"),
        )
        for slo in slos
        if slo.source is None
        for objective in objectives(slo)
    ]


def promises_in(versions: Iterable[SloVersion]) -> list[Promise]:
    """Those that were in force when a service last ran on the database."""
    documents = ((row, json.loads(row.document)) for row in versions if row.retired_ns is None)
    return [
        Promise(
            slo=row.slo,
            objective=row.objective,
            definition=row.definition,
            budget_ratio=said["objective"]["budget_ratio"],
            threshold_s=said["objective"]["threshold_s"],
            window=_window(said["slo"]["window"]),
            by=tuple(said["slo"]["by"]),
            tenant=said["slo"]["select"].get("tenant"),
        )
        for row, said in documents
        if said["slo"]["source"] is None
    ]


def _window(said: dict[str, float | str]) -> Window:
    if "seconds" in said:
        return Rolling(float(said["seconds"]))
    return Calendar(said["period"], str(said["time_zone"]))  # type: ignore[arg-type]
