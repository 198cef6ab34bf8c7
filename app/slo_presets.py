"""First files of SLOs, with the figures that interactive and batch serving usually need."""

from enum import StrEnum
from importlib.resources import files


class Preset(StrEnum):
    """Kinds of serving that want different clocks."""

    CHAT = "chat"
    COMPLETION = "completion"
    DOCUMENT = "document"
    BATCH = "batch"


def preset_text(preset: Preset, name: str) -> str:
    """The commented file of a preset, its SLO called `name`."""
    text = (files("tailburn.app") / "presets" / f"{preset}.yaml").read_text(encoding="utf-8")
    return text.replace(f"  name: {preset}", f"  name: {name}", 1)
