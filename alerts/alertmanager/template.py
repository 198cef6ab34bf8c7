"""The message templates, as Alertmanager reads them."""

from importlib import resources
from typing import Final

TEMPLATE_FILE: Final = "tailburn.tmpl"


def template() -> str:
    """The text of the file of templates."""
    return resources.files(__package__).joinpath(TEMPLATE_FILE).read_text(encoding="utf-8")
