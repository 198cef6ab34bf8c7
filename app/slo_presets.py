"""First files of SLOs, with the figures that interactive and batch serving usually need."""

from importlib.resources import files
from typing import Final

PRESETS: Final = ("chat", "completion", "document", "batch")


def preset_text(preset: str, name: str) -> str:
    """The commented file of a preset, its SLO called `name`."""
    text = (files("tailburn.app") / "presets" / f"{preset}.yaml").read_text(encoding="utf-8")
    return text.replace(f"  name: {preset}", f"  name: {name}", 1)
