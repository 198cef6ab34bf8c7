"""Changes of the fleet as plain rows, and in one line each; what is fit to be one."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tailburn.alerts.incidents import acting
from tailburn.app.errors import UserError
from tailburn.engine.changes import Change, Kind

MOST_NAME: Final = 256
MOST_WHO: Final = acting.MOST_NAME
MOST_LINK: Final = 2_048
MOST_DIMENSIONS: Final = 16


def change_row(change: Change) -> dict[str, Any]:
    return {
        "id": change.id,
        "at_ns": change.at_ns,
        "kind": str(change.kind),
        "what": change.what,
        "old": change.old,
        "new": change.new,
        "where": dict(change.where),
        "who": change.who,
        "link": change.link,
        "tenant": change.tenant,
    }


def in_words(change: Change) -> str:
    """`03:05 deploy vllm 0.32.0 -> 0.33.0, model llama`."""
    at = datetime.fromtimestamp(change.at_ns / 1e9, UTC).strftime("%H:%M")
    versions = " -> ".join(each for each in (change.old, change.new) if each)
    where = "".join(f", {name} {value}" for name, value in change.where.items())
    return f"{at} {change.kind} {change.what} {versions}".rstrip() + where


def checked(change: Change) -> Change:
    """Raises UserError for what is too long to be kept, or names nothing."""
    if not change.what.strip():
        raise UserError("what: is empty; want the name of what changed, such as vllm")
    named: Mapping[str, tuple[str, int]] = {
        "what": (change.what, MOST_NAME), "old": (change.old, MOST_NAME),
        "new": (change.new, MOST_NAME), "who": (change.who, MOST_WHO),
        "link": (change.link, MOST_LINK),
        **{f"where {name}": (name + value, MOST_NAME) for name, value in change.where.items()},
    }  # fmt: skip
    for name, (text, most) in named.items():
        if len(text) > most:
            raise UserError(f"{name}: {len(text):,} characters; {most:,} at most")
    if len(change.where) > MOST_DIMENSIONS:
        raise UserError(f"where: {len(change.where)} dimensions; {MOST_DIMENSIONS} at most")
    if change.link and not change.link.startswith(("http://", "https://")):
        raise UserError(f"link: {change.link}: want an address that begins with https://")
    return change


def kind_of(text: str) -> Kind:
    """Raises UserError."""
    try:
        return Kind(text)
    except ValueError:
        raise UserError(f"kind: {text}: want one of {', '.join(Kind)}") from None
