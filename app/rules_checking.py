"""What `tailburn rules check` knows besides the SLOs: options, texts, a live Prometheus."""

from pathlib import Path

from tailburn.app.errors import UserError
from tailburn.app.prometheus_api import PrometheusApi, duration_s
from tailburn.rules.lint.known import Known


def known_from(rate_per_s: float | None, retention: str | None, prometheus: str | None) -> Known:
    """Raises UserError for a time that is none, and where no Prometheus answers."""
    retention_s = None
    if retention is not None:
        retention_s = duration_s(retention)
        if retention_s is None:
            raise UserError(f"--retention {retention!r}: want a time such as 15d or 1y")
    return Known(
        rate_per_s=rate_per_s,
        retention_s=retention_s,
        prometheus=None if prometheus is None else PrometheusApi(prometheus),
    )


def lines_of(path: Path) -> list[str]:
    """The lines of a text. Raises UserError where it can't be read."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: can't be read: {error}") from None
