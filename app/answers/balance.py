"""Every span received and what became of it, per resource, as plain rows."""

from pathlib import Path
from typing import Any

from tailburn.app.errors import UserError
from tailburn.collector.balance import Balance
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.snapshot import OtherForm, peek
from tailburn.engine.names import FATES


def balance_rows(balance: Balance, resources: Resources) -> list[dict[str, Any]]:
    """`received` and each fate; they add up, or this program is at fault."""
    return [
        {"resource": resources.json(line.resource), "received": line.received, **line.fates}
        for line in balance.lines()
    ]


def with_total(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows and one more that adds them up, of resource `total`."""
    sums = {name: sum(row[name] for row in rows) for name in ("received", *FATES)}
    return [*rows, {"resource": "total", **sums}]


def stored_balance(store: Path) -> list[dict[str, Any]] | None:
    """As of the newest snapshot of a store; None where there is none. Raises UserError."""
    try:
        found = peek(store / "snapshots")
    except OtherForm as error:
        raise UserError(f"store {store}: {error}") from None
    if found is None:
        return None
    resources = Resources.load(found.meta["resources"])
    return balance_rows(Balance.restore(found.meta["balance"]), resources)
