"""The two comments between which a configuration is ours, so that it can be replaced.

Everything outside them is the user's and stays as it is, to the byte.
"""

import re
from typing import Final

_NAME: Final = "tailburn"
BEGIN: Final = f"# >>> {_NAME}: written by `tailburn alerts routes`, which replaces it"
END: Final = f"# <<< {_NAME}"

_LINES: Final = (
    rf"(?P<margin>[ ]*)# >>> {_NAME}\b[^\n]*\n"
    rf"(?:(?![ ]*# (?:<<<|>>>) {_NAME})[^\n]*\n)*"
    rf"[ ]*# <<< {_NAME}[^\n]*\n"
)
_MARK: Final = re.compile(rf"[ ]*# (>>>|<<<) {_NAME}\b")
_BLOCK: Final = re.compile(f"^{_LINES}", re.MULTILINE)
_AFTER_BRACKET: Final = re.compile(rf"(?<=[\[{{])\n{_LINES}(?P=margin)")


def as_block_part(lines: list[str], margin: str) -> str:
    """Lines between the marks, each with its end, to stand before a line of a block."""
    return "".join(f"{margin}{line}\n" for line in (BEGIN, *lines, END))


def as_flow_part(lines: list[str], margin: str) -> str:
    """Lines between the marks, to stand after an opening bracket; what follows is indented."""
    return "\n" + as_block_part(lines, margin) + margin


def without_ours(text: str) -> str:
    """The text as its owner wrote it; a mark without its other stays."""
    return _BLOCK.sub("", _AFTER_BRACKET.sub("", text))


def lone_mark(text: str) -> int | None:
    """The first line, from 1, with a mark whose other is missing."""
    begun = 0
    for number, line in enumerate(text.splitlines(), 1):
        mark = _MARK.match(line)
        if mark is None:
            continue
        if (mark[1] == ">>>") is bool(begun):
            return begun or number
        begun = 0 if begun else number
    return begun or None
