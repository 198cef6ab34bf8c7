"""Which tenant sees which figures."""

from collections.abc import Iterable


def is_seen_by(tenant: str | None, selected: str | None, values: Iterable[tuple[str, str]]) -> bool:
    """Whether a reader of `tenant` sees a series with these values of its SLO's `by`.

    `selected` is the tenant that the SLO selects. What is summed over tenants is for those alone
    who may see them all: `tenant` None.
    """
    return tenant is None or selected == tenant or ("tenant", tenant) in values
