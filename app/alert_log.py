"""What the log of the service says of alerts and of edits of SLOs."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from tailburn.engine.evaluation import Flip, Status
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.store.api import Damaged
from tailburn.engine.store.state.versions import Edit

log = logging.getLogger(__name__)

_MOST_LINES: Final = 20  # of a minute, one for each change


def explained(flip: Flip, edits: Iterable[Edit]) -> Flip:
    """Why an alert ended whose budget is another one since the last evaluation."""
    if flip.new is not Status.INACTIVE:
        return flip
    for edit in edits:
        if (edit.slo, edit.objective) == (flip.key.slo, flip.key.objective):
            return replace(flip, reason=_edited(edit))
    return flip


def tell_edit(edit: Edit) -> None:
    what = "new" if edit.old is None else _edited(edit)
    log.info("SLO %s, %s: %s", edit.slo, edit.objective, what)


def _edited(edit: Edit) -> str:
    if edit.new is None:
        return "the SLO does not have this objective any more"
    return f"the SLO was edited: its budget is counted anew under definition {edit.new}"


def tell_flips(flips: Sequence[Flip]) -> None:
    """What began or ended to fire; a bounded number of lines."""
    told = [f for f in flips if f.old.fires or f.new.fires]
    for flip in told[:_MOST_LINES]:
        by = "".join(f", {name}={value}" for name, value in flip.key.by)
        log.warning(
            "%s %s (%s %s%s) is %s: %s",
            flip.key.severity, flip.key.alertname, flip.key.slo, flip.key.objective, by, flip.new,
            flip.reason,
        )  # fmt: skip
    if len(told) > _MOST_LINES:
        log.warning("%d more alerts changed in that minute", len(told) - _MOST_LINES)


def tell_gap(since_ns: int, until_ns: int) -> None:
    log.warning(
        "alerts were not evaluated for %.0f min: that time is a gap, and what fired before it "
        "goes on by what comes now",
        (until_ns - since_ns) / MINUTE_NS,
    )


def tell_set_back(by_ns: int) -> None:
    log.warning(
        "the clock went back by %.1f min: alerts are evaluated by the new time, and keep how long "
        "they have fired",
        by_ns / MINUTE_NS,
    )


def tell_damaged(segments: Sequence[Damaged]) -> None:
    if segments:
        first = segments[0]
        log.error(
            "alerts go on without what %d damaged segments of the store held; the first is %s: %s",
            len(segments), first.path, first.reason,
        )  # fmt: skip
