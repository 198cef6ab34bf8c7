"""A namespace of rules, as `mimirtool rules load` takes it."""

from collections.abc import Sequence

from tailburn.rules.formats.yaml import groups_of, text
from tailburn.rules.model import Group


def written(name: str, groups: Sequence[Group]) -> str:
    """One namespace for each SLO: loading one leaves the others alone."""
    return f"namespace: {text(f'tailburn-{name}')}\n" + groups_of(groups)
