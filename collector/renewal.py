"""Forgets, at a start, the names that nothing open uses any more.

While a service runs, a code once given stands for its text for ever: a sender that makes up
names fills its share of the tables, and what it sends after that has no names. Here the codes
that a snapshot still needs are given anew, and all other room is free again.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.balance import FATE
from tailburn.collector.otlp import dictionary, resources
from tailburn.collector.snapshot import Snapshot
from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.clocks import OffsetPool
from tailburn.collector.stitch.intake import T_TENANT

Arrays = dict[str, NDArray[Any]]

MOST_TEXTS: Final = dictionary.CAPACITY // 4
MOST_RESOURCES: Final = resources.CAPACITY // 4

_NARROW: Final = [at.NARROW.index(name) for name in ("host", *at.CODES)]
_OUT: Final = [at.OUT.index(name) for name in at.CODES]


def renewed(
    found: Snapshot, most_texts: int = MOST_TEXTS, most_resources: int = MOST_RESOURCES
) -> Snapshot:
    """The snapshot without texts and resources out of use, where it holds more than so many.

    What clocks differ by is learnt anew, since it is kept by code. The balance of a resource
    of which nothing is open goes to the line of the unknown one.
    """
    arrays, meta = dict(found.arrays), dict(found.meta)
    if len(meta["dictionary"]["texts"]) > most_texts:
        arrays, meta["dictionary"] = _texts_in_use(arrays, meta["dictionary"]["texts"])
    if len(meta["resources"]["messages"]) > most_resources:
        meta |= _resources_in_use(meta["resources"]["messages"], meta["balance"])
    return dataclasses.replace(found, arrays=arrays, meta=meta)


def _texts_in_use(arrays: Arrays, texts: list[str]) -> tuple[Arrays, dict[str, Any]]:
    arrays = arrays | {name: arrays[name].copy() for name in ("narrow", "emitted_out", "traces")}
    columns = [
        *(arrays["narrow"][:, i] for i in _NARROW),
        *(arrays["emitted_out"][:, i] for i in _OUT),
        arrays["traces"][:, T_TENANT],
    ]
    used = np.unique(np.concatenate([[0], *columns]).astype(np.int64))
    anew = np.zeros(len(texts), np.int64)
    anew[used] = np.arange(len(used))
    for column in columns:
        column[:] = anew[column]
    return arrays | OffsetPool().state(), {"texts": [texts[i] for i in used], "shares": {}}


def _resources_in_use(messages: list[str], balance: Mapping[str, Any]) -> dict[str, Any]:
    received = np.array(balance["received"], np.int64)
    fates = np.array(balance["fates"], np.int64)
    codes = np.arange(len(received))
    used = np.flatnonzero((fates[:, FATE["open"]] != 0) | (codes == 0))
    gone = np.setdiff1d(codes, used)
    received[0] += received[gone].sum()
    fates[0] += fates[gone].sum(axis=0)
    return {
        "resources": {"messages": [messages[i - 1] for i in used[1:]], "shares": {}},
        "balance": {
            **balance,
            "received": received[used].tolist(),
            "fates": fates[used].tolist(),
        },
    }
