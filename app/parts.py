"""The parts between a body and its rows, put together from settings."""

from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.collector.hops.problems import RulesError
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.stitch.table import Bounds
from tailburn.engine.store.keeping import Keeping, Kept
from tailburn.engine.store.parquet import ParquetStore


def rules_of(settings: Settings) -> Rules:
    """The rules of the user's files before the shipped ones. Raises UserError for bad files."""
    try:
        return load_rules([*settings.hops_files, *settings.dimension_files])
    except RulesError as error:
        raise UserError(*(str(problem) for problem in error.problems)) from None


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


def bounds_of(settings: Settings) -> Bounds:
    return Bounds(
        idle_close_ns=_ns(settings.idle_close_s),
        rootless_close_ns=_ns(settings.rootless_close_s),
        hard_close_ns=_ns(settings.hard_close_s),
        spans_per_trace=settings.open_spans_per_trace,
        spans_per_tenant=settings.open_spans_per_tenant,
        spans_in_all=settings.open_spans,
    )


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
