"""The store as the settings want it."""

from pathlib import Path
from typing import Final

from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.app.settings_sources import load_settings
from tailburn.engine.schema import TABLES
from tailburn.engine.store.keeping import Keeping, Kept
from tailburn.engine.store.parquet import ParquetStore


def keeping_of(settings: Settings) -> Keeping:
    return Keeping(
        requests=Kept(settings.requests_kept_h),
        spans=Kept(settings.spans_kept_h),
        rollups=Kept(settings.rollups_kept_h),
        signals=Kept(settings.signals_kept_h),
        verdicts=Kept(settings.verdicts_kept_h),
        excess=Kept(settings.verdicts_kept_h),
        spans_full=Kept(settings.spans_full_h),
        sample_ratio=settings.spans_sample_ratio,
    )


def store_of(settings: Settings) -> ParquetStore:
    """The store to read from; opening it touches nothing."""
    return ParquetStore(settings.store, keeping_of(settings), settings.query_memory_bytes)


def asked_store(folder: Path | None, config: Path | None) -> Settings:
    """The settings of a command that reads a store. Raises UserError where there is none."""
    settings = load_settings({"store": folder}, config)
    if not is_store(settings.store):
        below = [str(path) for path in stores_below(settings.store)]
        hint = (
            f"; is it {' or '.join(below)}?"
            if below
            else "; `tailburn serve` or `tailburn replay` makes one, --store names another"
        )
        raise UserError(f"{settings.store}: no store here{hint}")
    return settings


_MARKS: Final = frozenset(("lock", "log", "snapshots", "state.sqlite", "state-id", *TABLES))
_MOST_NAMED: Final = 3


def is_store(folder: Path) -> bool:
    """Whether a service or a replay has written there."""
    return folder.is_dir() and any(path.name in _MARKS for path in folder.iterdir())


def stores_below(folder: Path) -> list[Path]:
    """The first few stores that lie in this folder, or beside it where it is not there."""
    around = folder if folder.is_dir() else folder.parent
    if not around.is_dir():
        return []
    return sorted(path for path in around.iterdir() if is_store(path))[:_MOST_NAMED]


def refuse_foreign(folder: Path) -> None:
    """Raises UserError for a folder that has other people's files and nothing of a store."""
    if folder.is_dir() and any(folder.iterdir()) and not is_store(folder):
        raise UserError(f"store {folder}: holds files that are no store's; name an empty folder")
