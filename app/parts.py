"""The parts between a body and its rows, put together from settings."""

from collections.abc import Sequence
from pathlib import Path

from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.stitch.table import Bounds
from tailburn.engine.problems import BadFiles


def rules_of(settings: Settings) -> Rules:
    """The rules of the user's files before the shipped ones. Raises UserError for bad files."""
    try:
        return load_rules([*settings.hops_files, *settings.dimension_files])
    except BadFiles as error:
        raise UserError(*(str(problem) for problem in error.problems)) from None


def catalogue_of(settings: Settings, files: Sequence[Path] = ()) -> Catalogue:
    """Signals of `files` and the settings' before the shipped. Raises UserError for bad files."""
    try:
        return load_catalogue([*files, *settings.signals_files])
    except BadFiles as error:
        raise UserError(*(str(problem) for problem in error.problems)) from None


def reads_metrics(settings: Settings) -> bool:
    """Whether any setting is about what is read; without one nobody need load the names."""
    return bool(
        settings.targets_files
        or settings.targets_http
        or settings.targets_dns
        or settings.targets_kubernetes
        or settings.signals_prometheus
        or settings.signals_files
    )


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
