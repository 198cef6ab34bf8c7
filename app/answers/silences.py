"""Silences as plain rows."""

from typing import Any

from tailburn.engine.silences import Silence


def silence_row(silence: Silence, now_unix_ns: int) -> dict[str, Any]:
    """`id` is its number, as people call it."""
    began, ended = silence.starts_unix_ns <= now_unix_ns, silence.ends_unix_ns <= now_unix_ns
    return {
        "id": silence.id,
        "state": "ended" if ended else "active" if began else "pending",
        "matchers": list(silence.matchers),
        "starts_unix_ns": silence.starts_unix_ns,
        "ends_unix_ns": silence.ends_unix_ns,
        "who": silence.who,
        "why": silence.why,
    }
