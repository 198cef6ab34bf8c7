"""The labels of what is fed: one label set in trouble, and one beside it that is well."""

from tailburn.engine.names import DEFINITION_LABEL, OBJECTIVE_LABEL, SLO_LABEL
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo


def identity(slo: Slo, objective: Objective) -> dict[str, str]:
    """The labels by which a budget is told apart."""
    return {
        SLO_LABEL: slo.name,
        OBJECTIVE_LABEL: objective.name,
        DEFINITION_LABEL: definition_of(slo, objective),
    }


def troubled(slo: Slo) -> dict[str, str]:
    """The values of `by` where the course is what the test says."""
    return {name: slo.select.get(name, f"{name}-in-trouble") for name in slo.by}


def well(slo: Slo) -> dict[str, str] | None:
    """The values of `by` where every request is good; None without another value."""
    if set(slo.by) <= set(slo.select):
        return None
    return {name: slo.select.get(name, f"{name}-that-is-well") for name in slo.by}
