"""The store as the settings want it."""

from tailburn.app.settings import Settings
from tailburn.engine.store.keeping import Keeping, Kept
from tailburn.engine.store.parquet import ParquetStore


def keeping_of(settings: Settings) -> Keeping:
    return Keeping(
        requests=Kept(settings.requests_kept_h),
        spans=Kept(settings.spans_kept_h),
        rollups=Kept(settings.rollups_kept_h),
        signals=Kept(settings.signals_kept_h),
        spans_full=Kept(settings.spans_full_h),
        sample_ratio=settings.spans_sample_ratio,
    )


def store_of(settings: Settings) -> ParquetStore:
    """The store to read from; opening it touches nothing."""
    return ParquetStore(settings.store, keeping_of(settings), settings.query_memory_bytes)
