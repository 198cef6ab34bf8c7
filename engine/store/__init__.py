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

__all__ = [
    "ALWAYS",
    "BadQuery",
    "Compacted",
    "Damaged",
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
