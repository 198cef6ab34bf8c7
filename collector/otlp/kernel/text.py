"""Which part of a string may be kept, and the blanking of the rest in place.

Blanked bytes become spaces, so that a body keeps its length, its framing and its UTF-8.
A string of spaces therefore counts as empty, and blanking twice changes nothing.
"""

from typing import Final

from tailburn.collector.otlp.kernel.memory import compiled, copy, equal16, fill, high16, load8
from tailburn.collector.otlp.kernel.names import HIDDEN, LONG, URL, patterns_at, plain
from tailburn.collector.otlp.kernel.state import state_at
from tailburn.collector.otlp.kernel.wire import BAD, is_utf8

BLANK: Final = 32

_WIDE: Final = 1  # not all ASCII
_SUSPECT: Final = 2  # may hold a secret: look closely
_WINDOW: Final = 14  # a window of 16 bytes sees every run of 3 if it moves by 14


@compiled
def inspect(pad: int, p: int, end: int, readable: int) -> int:
    """WIDE and SUSPECT for a string. Bytes below `readable` may be read; `pad` has room for 16.

    Suspects: `@ = { ? #`, `: `, `sk-`, `ear` of "Bearer " and `eyJ`, how every JWT begins.
    """
    flags = 0
    while p < end:
        left = end - p
        at = p
        if p + 16 > readable:
            copy(pad, p, min(left, 16))
            at = pad
        mask = 0xFFFF if left >= 16 else (1 << left) - 1
        if high16(at) & mask:
            flags |= _WIDE
        single = equal16(at, 64) | equal16(at, 61) | equal16(at, 123) | equal16(at, 63)
        single |= equal16(at, 35) | (equal16(at, 58) & (equal16(at, 32) >> 1))
        runs = equal16(at, 115) & (equal16(at, 107) >> 1) & (equal16(at, 45) >> 2)
        runs |= equal16(at, 101) & (equal16(at, 97) >> 1) & (equal16(at, 114) >> 2)
        runs |= equal16(at, 101) & (equal16(at, 121) >> 1) & (equal16(at, 74) >> 2)
        if (single | runs) & mask:
            flags |= _SUSPECT
        if left <= 16:
            break
        p += _WINDOW
    return flags


@compiled
def _is_word(byte: int) -> bool:
    """A letter, a digit, `_` or `-`."""
    lower = byte | 32
    return 97 <= lower <= 122 or 48 <= byte <= 57 or byte == 95 or byte == 45


@compiled
def _is_letter(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122


@compiled
def _run_of_words(p: int, end: int) -> int:
    """How many word characters stand at `p`."""
    start = p
    while p < end and _is_word(load8(p)):
        p += 1
    return p - start


@compiled
def _is_email(start: int, p: int, end: int) -> bool:
    """Whether the `@` at `p` is that of an e-mail address."""
    if p == start or not (_is_word(load8(p - 1)) or load8(p - 1) in (43, 46)):
        return False
    p += 1
    while p < end and (_is_word(load8(p)) or load8(p) == 46):
        if load8(p) == 46 and p + 1 < end and _is_letter(load8(p + 1)):
            return True
        p += 1
    return False


@compiled
def _is_login(start: int, p: int) -> bool:
    """Whether the `@` at `p` ends the user part of a URL: `scheme://user:password@host`."""
    while p > start and load8(p) != 47:
        p -= 1
    return p > start + 1 and load8(p - 1) == 47 and load8(p - 2) == 58


@compiled
def _is_bearer(p: int, end: int) -> bool:
    """Whether "bearer" and something stand at `p`."""
    if end - p < 8:
        return False
    name = (98, 101, 97, 114, 101, 114)
    for i in range(6):
        if (load8(p + i) | 32) != name[i]:
            return False
    return load8(p + 6) == 32 and load8(p + 7) != 32


@compiled
def _is_assignment(words: int, start: int, p: int, end: int) -> bool:
    """Whether the `:` or `=` at `p` stands behind one of the words, and a value behind it."""
    list_ = patterns_at(words)
    stop = p
    while stop > start and load8(stop - 1) in (32, 34, 39, 92):
        stop -= 1
    p += 1
    while p < end and load8(p) in (32, 34, 39, 92, 91):
        p += 1
    if p == end or load8(p) in (44, 125, 93):
        return False
    begin = 0
    for i in range(list_.count):
        ends = list_.ends + 2 * i
        after = load8(ends) | (load8(ends + 1) << 8)
        length = after - begin
        if stop - start >= length:
            equal = True
            for j in range(length):
                if plain(load8(stop - length + j)) != load8(list_.bytes + begin + j):
                    equal = False
                    break
            if equal:
                return True
        begin = after
    return False


@compiled
def holds_secret(words: int, p: int, end: int) -> bool:
    """Whether a string holds an e-mail address, a credential, or a word and its value."""
    start = p
    while p < end:
        byte = load8(p)
        if byte == 64:
            if _is_email(start, p, end) or _is_login(start, p):
                return True
        elif byte == 58 or byte == 61:
            if _is_assignment(words, start, p, end):
                return True
        elif byte == 98 or byte == 66:
            if _is_bearer(p, end):
                return True
        elif byte == 115 or byte == 101:
            fresh = p == start or not _is_word(load8(p - 1))
            if fresh and end - p > 8 and _starts_credential(p, end):
                return True
        p += 1
    return False


@compiled
def _starts_credential(p: int, end: int) -> bool:
    """`sk-` with a key behind it, or a JSON web token."""
    key = load8(p) == 115 and load8(p + 1) == 107 and load8(p + 2) == 45
    token = load8(p) == 101 and load8(p + 1) == 121 and load8(p + 2) == 74
    return (key and _run_of_words(p + 3, end) >= 6) or (token and _run_of_words(p, end) >= 16)


@compiled
def _query_at(p: int, end: int, url: bool) -> int:
    """Where the query or fragment of a URL begins; `end` when there is none."""
    if p < end and load8(p) == 47:
        url = True
    while p < end:
        byte = load8(p)
        if url and (byte == 63 or byte == 35):
            return p
        if byte == 58 and p + 2 < end and load8(p + 1) == 47 and load8(p + 2) == 47:
            url = True
        p += 1
    return end


@compiled
def _is_blank(p: int, end: int) -> bool:
    while p < end:
        if load8(p) != BLANK:
            return False
        p += 1
    return True


@compiled
def blank(p: int, end: int) -> None:
    """Blank a string in place."""
    fill(p, BLANK, end - p)


@compiled
def _clean(words: int, class_: int, flags: int, p: int, end: int) -> int:
    stop = end
    if flags & _SUSPECT:
        stop = _query_at(p, end, class_ & URL != 0)
        blank(min(stop + 1, end), end)
        if holds_secret(words, p, stop):
            blank(p, end)
            return p
    if p < stop and load8(p) == BLANK and _is_blank(p, stop):
        return p
    return stop


@compiled
def clean_bytes(state: int, class_: int, p: int, end: int, longest: int) -> int:
    """Blank in place what may not be kept of a string; the end of what may.

    `class_` is that of its name; `longest` holds for strings that aren't LONG.
    """
    c = state_at(state)
    if class_ & HIDDEN or (end - p > longest and not class_ & LONG):
        blank(p, end)
        return p
    return _clean(c.words, class_, inspect(c.pad, p, end, c.readable), p, end)


@compiled
def clean(state: int, class_: int, p: int, end: int, longest: int) -> int:
    """As `clean_bytes`, of a string; BAD if that is no UTF-8."""
    c = state_at(state)
    if class_ & HIDDEN or (end - p > longest and not class_ & LONG):
        if not is_utf8(p, end):
            return BAD
        blank(p, end)
        return p
    flags = inspect(c.pad, p, end, c.readable)
    if flags & _WIDE and not is_utf8(p, end):
        return BAD
    return _clean(c.words, class_, flags, p, end)
