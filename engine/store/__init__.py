"""Where rows lie: the interface, and how to open the store behind it."""

from tailburn.engine.store.api import (
    ALWAYS,
    BadQuery,
    Compacted,
    Damaged,
    LogRange,
    NotDurable,
    Retired,
    Store,
    StoreError,
    TableUsage,
    Trace,
    UnknownColumn,
    Window,
)
from tailburn.engine.store.keeping import Keeping, Kept

__all__ = [
    "ALWAYS",
    "BadQuery",
    "Compacted",
    "Damaged",
    "Keeping",
    "Kept",
    "LogRange",
    "NotDurable",
    "Retired",
    "Store",
    "StoreError",
    "TableUsage",
    "Trace",
    "UnknownColumn",
    "Window",
]
