"""What one set of rules does that another does not.

A rule is known by its name and labels. A series that is recorded under other labels than before
is another series: what looks back over it finds nothing until its window has passed again.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailburn.engine.names import DEFINITION_LABEL
from tailburn.rules.comparing.meaning import canonical, labels_out, matched
from tailburn.rules.model import Group, Rule, RuleSet
from tailburn.rules.promql import duration


class Change(StrEnum):
    """What became of a rule."""

    ADDED = "added"
    REMOVED = "removed"
    EXPR = "expression"
    LABELS = "labels"
    FOR = "for"
    ANNOTATIONS = "annotations"
    INTERVAL = "interval"


@dataclass(frozen=True)
class Difference:
    """One change of one rule; `warning` is empty unless it loses something."""

    change: Change
    rule: str  # name and labels
    old: str
    new: str
    warning: str = ""


ENOUGH_ALIKE: Final = 0.5
"""Share of equal labels from which on a rule is the old one under other labels."""
ANEW: Final = "a definition changed: its budget begins anew"

_Key = tuple[str, str, tuple[tuple[str, str], ...]]


def differences(old: RuleSet, new: RuleSet) -> tuple[Difference, ...]:
    """All changes from the old set to the new, in the order of the new; removed ones last."""
    before, after = _by_key(old), _by_key(new)
    gone = {key: before[key] for key in before if key not in after}
    found: list[Difference] = []
    for key, (rule, group) in after.items():
        if key in before:
            found.extend(_changed(before[key], (rule, group)))
        elif (twin := _relabelled(rule, gone)) is not None:
            was = gone.pop(twin)
            found.append(_labels_changed(was[0], rule))
            found.extend(_changed(was, (rule, group)))
        else:
            found.append(Difference(Change.ADDED, _told(rule), "", rule.expr))
    found += [Difference(Change.REMOVED, _told(r), r.expr, "") for r, _ in gone.values()]
    return tuple(found)


def _by_key(rules: RuleSet) -> dict[_Key, tuple[Rule, Group]]:
    """Rules by what they are known by; of those known by the same, each has a number."""
    found: dict[_Key, tuple[Rule, Group]] = {}
    times: dict[_Key, int] = defaultdict(int)
    for group in rules.groups:
        for rule in group.rules:
            kind = "alert" if rule.alert else "record"
            key = (kind, rule.name, tuple(sorted(rule.labels.items())))
            times[key] += 1
            numbered = (f"{kind} {times[key]}", key[1], key[2])
            found[numbered] = (rule, group)
    return found


def _changed(old: tuple[Rule, Group], new: tuple[Rule, Group]) -> Iterator[Difference]:
    (was, old_group), (now, new_group) = old, new
    name = _told(now)
    if canonical(was.expr) != canonical(now.expr):
        yield Difference(Change.EXPR, name, was.expr, now.expr, _lost(was, now))
    if was.for_s != now.for_s:
        yield Difference(Change.FOR, name, f"{was.for_s} s", f"{now.for_s} s")
    if was.annotations != now.annotations:
        yield Difference(Change.ANNOTATIONS, name, str(was.annotations), str(now.annotations))
    if old_group.interval_s != new_group.interval_s:
        intervals = (duration(old_group.interval_s), duration(new_group.interval_s))
        yield Difference(Change.INTERVAL, name, *intervals)


def _lost(was: Rule, now: Rule) -> str:
    """What a changed expression costs: a budget that begins anew, or series under other labels."""
    old, new = (matched(rule.expr, DEFINITION_LABEL) for rule in (was, now))
    if now.record and old - new and new:
        return ANEW
    labels = labels_out(was.expr), labels_out(now.expr)
    if now.record and None not in labels and labels[0] != labels[1]:
        return (
            f"the series have other labels ({', '.join(labels[1] or ()) or 'none'} instead of "
            f"{', '.join(labels[0] or ()) or 'none'}): their history is cut"
        )
    return ""


def _relabelled(rule: Rule, gone: Mapping[_Key, tuple[Rule, Group]]) -> _Key | None:
    """The rule that this one was under other labels: of its name, with most labels alike."""
    best, most = None, 0.0
    for key, (old, _) in gone.items():
        if (bool(old.alert), old.name) == (bool(rule.alert), rule.name):
            alike = _likeness(old.labels, rule.labels)
            if alike >= ENOUGH_ALIKE and alike > most:
                best, most = key, alike
    return best


def _likeness(old: Mapping[str, str], new: Mapping[str, str]) -> float:
    """The share of all labels of both that have the same value."""
    names = {*old, *new}
    return sum(old.get(name) == new.get(name) for name in names) / len(names) if names else 1.0


def _labels_changed(was: Rule, now: Rule) -> Difference:
    if now.alert:
        warning = "what fires now ends, and fires again under the new labels"
    elif was.labels.get(DEFINITION_LABEL) != now.labels.get(DEFINITION_LABEL):
        warning = ANEW
    else:
        warning = (
            "the series has other labels: its history is cut, and what looks back over it finds "
            "nothing until its window has passed"
        )
    return Difference(Change.LABELS, now.name, _told(was), _told(now), warning)


def _told(rule: Rule) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in rule.labels.items())
    return f"{rule.name}{{{labels}}}" if labels else rule.name
