"""Recordings taken straight into a store, at the receive times they were recorded with."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tailburn.app.access import DEFAULT_TENANT
from tailburn.app.collecting import Collecting, collect
from tailburn.app.errors import UserError
from tailburn.app.exposition import RequestSeries
from tailburn.app.parts import rules_of
from tailburn.app.replay.pace import Pace
from tailburn.app.replay.paths import recordings
from tailburn.app.replay.recording import Recording
from tailburn.app.settings import Settings
from tailburn.collector.errors import Busy, IngestError, NoRoom

_BUSY_S: Final = 0.05


@dataclass
class Taken:
    """What became of the bodies. `refused` says where each lies and what was wrong with it."""

    bodies: int = 0
    bytes: int = 0
    rejected_spans: int = 0
    refused: list[str] = field(default_factory=list)


class _RecordedTime:
    """The receive time of the recording that is being taken."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def take(
    paths: Sequence[Path],
    settings: Settings,
    speed: float | None = None,
    on_body: Callable[[Recording], None] = lambda recording: None,
) -> Taken:
    """Take every recording under `paths` in, in order, then close all that is open.

    A body that can't be decoded is named and the rest goes on. Raises RecordingError, and
    UserError where the store can't be written.
    """
    everything = list(recordings(paths))
    now_ns, taken = _RecordedTime(), Taken()
    collecting = collect(settings, rules_of(settings), now_ns, RequestSeries())

    async def take_all() -> None:
        pace = Pace(speed)
        for recording in everything:
            await asyncio.sleep(pace.left_s(recording.received_ns))
            now_ns.ns = recording.received_ns
            await _take_one(collecting, recording, taken)
            on_body(recording)

    try:
        asyncio.run(take_all())
        if everything:
            collecting.intake.tick(now_ns(), closes_all=True)
    finally:
        collecting.close()
    if (trouble := collecting.keeper.trouble) is not None:
        raise UserError(f"store {settings.store}: {trouble}")
    return taken


async def _take_one(collecting: Collecting, recording: Recording, taken: Taken) -> None:
    while True:
        body = bytearray(recording.body)  # each try: the callee blanks it in place
        try:
            accepted = await collecting.intake(
                recording.signal, recording.encoding, body, DEFAULT_TENANT, recording.received_ns
            )
        except NoRoom as error:
            raise UserError(str(error)) from None
        except Busy:
            if (trouble := collecting.trouble) is not None:
                raise UserError(f"store: {trouble}") from None
            await asyncio.sleep(_BUSY_S)
        except IngestError as error:
            taken.refused.append(f"{recording.place}: {error}")
            return
        else:
            taken.bodies += 1
            taken.bytes += len(recording.body)
            taken.rejected_spans += accepted.rejected
            return
