"""Goes on where the last run ended, however it ended.

1. The newest whole snapshot gives the state at one position of the log.
2. Rows past that position leave the store.
3. The log past that position is worked through again.

Then rows and counters are those of a run without an end.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailburn.collector import snapshot
from tailburn.collector.errors import BadBody
from tailburn.collector.group import DecodePoints, Decoder, Delivery, Group, add_record
from tailburn.collector.keeper import Cadence, Keeper, Pipeline
from tailburn.collector.log import Bounds, Fault, LogReader, LogWriter, open_log
from tailburn.collector.snapshot import Snapshot
from tailburn.engine.store import Store

_GROUP_BYTES: Final = 8 * 1024 * 1024


class Unanchored(Exception):
    """The store has rows, and what says where in the log they came from is gone."""


@dataclass(frozen=True)
class Recovered:
    """What was found, for the log of the service and its counters."""

    snapshot_position: int  # 0: there was none
    snapshot_damaged: bool  # one was found so and set aside, now or earlier
    torn_bytes: int  # cut off the end of the log
    torn_reason: Fault | None
    records: int  # worked through again
    missing_records: int  # positions that no whole record was found for
    damaged_bytes: int  # in the midst of the log
    undecodable_records: int  # taken by an earlier version, not by this one
    discarded_segments: int  # of the store, past the snapshot


@dataclass(frozen=True)
class Collected:
    """All that stands between the doors and the store, ready to go on."""

    keeper: Keeper
    decoder: Decoder
    writer: LogWriter
    recovered: Recovered


def recover(
    folder: Path,
    store: Store,
    restore: Callable[[Snapshot | None], tuple[Pipeline, Decoder]],
    decode_points: DecodePoints,
    bounds: Bounds | None = None,
    cadence: Cadence | None = None,
    now_s: Callable[[], float] = time.monotonic,
) -> Collected:
    """Opens `folder`/log and `folder`/snapshots, which are this store's.

    `restore` makes a pipeline and a decoder of a snapshot, or new ones. Raises `Unanchored`,
    `engine.store.NotDurable`, and `OSError` where the disk can't be read or written.
    """
    log_folder, snapshots = folder / "log", folder / "snapshots"
    found = snapshot.load_latest(snapshots)
    opened = open_log(log_folder, found.position if found else 0, bounds)
    position = found.position if found else _before_first(log_folder, opened.writer, store)
    discarded = store.discard_after(position)
    pipeline, decoder = restore(found)
    keeper = Keeper(pipeline, store, opened.writer, snapshots, position, now_s, cadence)
    reader = LogReader(log_folder, position)
    replay = Replay(reader, decoder, decode_points)
    for delivery in replay:
        keeper.replay(delivery)
    keeper.publish()  # what was visible before the end is so again before anything else is taken
    recovered = Recovered(
        snapshot_position=found.position if found else 0,
        snapshot_damaged=snapshot.has_damaged(snapshots),
        torn_bytes=opened.torn_bytes,
        torn_reason=opened.reason,
        records=reader.records,
        missing_records=reader.missing_records,
        damaged_bytes=reader.damaged_bytes,
        undecodable_records=replay.undecodable_records,
        discarded_segments=discarded,
    )
    return Collected(keeper, decoder, opened.writer, recovered)


class Replay:
    """The deliveries of what lies in a log. Iterate once, then read the count."""

    def __init__(self, reader: LogReader, decoder: Decoder, decode_points: DecodePoints) -> None:
        self._reader = reader
        self._decoder = decoder
        self._decode_points = decode_points
        self.undecodable_records = 0

    def __iter__(self) -> Iterator[Delivery]:
        group, first, last = Group(), 0, 0
        for record in self._reader:
            first, last = first or record.position, record.position
            try:
                add_record(group, self._decoder, self._decode_points, record)
            except BadBody:
                self.undecodable_records += 1
            if group.body_bytes >= _GROUP_BYTES:
                yield group.delivery(first, last, self._decoder)
                group, first = Group(), 0
        if first:
            yield group.delivery(first, last, self._decoder)


def _before_first(log_folder: Path, writer: LogWriter, store: Store) -> int:
    """The position before the first that the log still holds.

    Rows up to there can't be made again, so they stay.
    """
    first = next(iter(LogReader(log_folder)), None)
    if first is not None:
        return first.position - 1
    if any(usage.segments for usage in store.usage().values()):
        raise Unanchored(
            f"the store has rows, but {log_folder} and the snapshots beside it are gone: bring"
            " them back, or move the rows to another place and begin with an empty store"
        )
    return writer.last_position
