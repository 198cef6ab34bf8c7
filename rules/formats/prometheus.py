"""A file of rules as Prometheus loads it."""

from collections.abc import Sequence

from tailburn.rules.formats.yaml import groups_of
from tailburn.rules.model import Group


def written(name: str, groups: Sequence[Group]) -> str:
    """The groups; Prometheus has no place for the file's name."""
    return groups_of(groups)
