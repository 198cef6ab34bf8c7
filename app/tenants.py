"""Which tenant sees which figures."""

from collections.abc import Iterable

from tailburn.engine.slo.model import Slo


def selected_tenants(slos: Iterable[Slo]) -> dict[str, str]:
    """The tenant that an SLO selects, by its name, where it selects one."""
    return {slo.name: slo.select["tenant"] for slo in slos if "tenant" in slo.select}


def is_seen_by(tenant: str | None, selected: str | None, values: Iterable[tuple[str, str]]) -> bool:
    """Whether a reader of `tenant` sees a series with these values of its SLO's `by`.

    `selected` is the tenant that the SLO selects. What is summed over tenants is for those alone
    who may see them all: `tenant` None.
    """
    return tenant is None or selected == tenant or ("tenant", tenant) in values
