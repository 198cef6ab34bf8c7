"""How a page reads, with all that is known and with nothing; and that names stay names."""

import unicodedata
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tailburn.alerts.pager.text import MOST_TITLE, SlowTrace, Told, clean, text, title
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity

S = 1_000_000_000
BEGAN = 1_780_000_200 * S

NOTHING = Told(
    What.TRIGGER, Severity.PAGE, 7, "chat", "ttft_p95", {"model": "llama"}, BEGAN,
    BEGAN + 120 * S, "33 % of ttft_p95 bad, too much is 28.8 % over 30 min",
)  # fmt: skip
ALL = replace(
    NOTHING,
    burn_rate=12.3,
    left_ratio=0.42,
    gone_ns=BEGAN + 120 * S + 5 * 3_600 * S,
    owner="gateway",
    says="gateway owns the excess. Look next: the gateway: its CPU and event loop.",
    traces=(SlowTrace("4bf92f3577b34da6", 4.2, "http://t/traces/4bf9"), SlowTrace("aa", 3.0)),
    changes=("03:05 deploy gateway 1.4 -> 1.5",),
    others=("page TailburnTier of docs", "ticket TailburnTier of chat"),
    links={"runbook": "http://r/burn", "incident": "http://t/incidents/7"},
)


def test_a_title_says_all_on_a_lock_screen() -> None:
    assert title(ALL) == (
        "chat (model llama): ttft_p95 burns its budget 12x too fast; gateway owns it"
    )
    assert title(NOTHING) == (
        "chat (model llama): 33 % of ttft_p95 bad, too much is 28.8 % over 30 min"
    )
    assert title(replace(ALL, what=What.RESOLVE)) == "Over: chat (model llama)"
    two = replace(NOTHING, where={}, more_slos=2, why="all of it bad")
    assert title(two) == "chat and 2 more: all of it bad"


def test_all_that_is_known_stands_in_the_order_of_its_weight() -> None:
    assert text(ALL).splitlines() == [
        "Since 20:30 UTC, 28 May: 33 % of ttft_p95 bad, too much is 28.8 % over 30 min",
        "Budget left: 42 %; gone in 5.0 h at this rate",
        "Whose: gateway owns the excess. Look next: the gateway: its CPU and event loop.",
        "Do: http://r/burn",
        "Changed: 03:05 deploy gateway 1.4 -> 1.5",
        "Slow: 4.20 s http://t/traces/4bf9",
        "Slow: 3.00 s aa",
        "Also: page TailburnTier of docs",
        "Also: ticket TailburnTier of chat",
        "Incident: http://t/incidents/7",
    ]


def test_what_is_not_known_is_said_to_be_so() -> None:
    said = text(NOTHING)
    assert "Budget left: not known" in said and "Whose: not known" in said
    assert "Changed: nothing is known to have changed" in said
    assert "Budget: gone (-12 %)" in text(replace(NOTHING, left_ratio=-0.12))


def test_an_end_says_how_long_it_lasted() -> None:
    over = replace(ALL, what=What.RESOLVE, at_ns=BEGAN + 47 * 60 * S)
    assert text(over).splitlines()[0] == "Over after 47 min; it began at 20:30 UTC, 28 May."


def test_a_flood_of_lines_is_counted() -> None:
    many = replace(ALL, others=tuple(f"alert {n}" for n in range(40)))
    assert "Also: 35 more" in text(many) and "alert 7" not in text(many)


NAMES = st.text(min_size=1, max_size=400)


@given(NAMES, st.integers(3, 200))
def test_a_name_stays_one_visible_line(name: str, most: int) -> None:
    found = clean(name, most)
    assert len(found) <= most
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in found)
    assert clean(found, most) == found


@given(NAMES, NAMES, NAMES, st.sampled_from(What))
def test_names_of_telemetry_add_no_lines_and_no_length(
    slo: str, value: str, why: str, what: What
) -> None:
    told = replace(ALL, what=what, slo=slo, where={"model": value}, why=why, owner=value)
    assert len(title(told)) <= MOST_TITLE and "\n" not in title(told)
    assert len(text(told).splitlines()) == len(text(replace(ALL, what=what)).splitlines())


def test_right_to_left_marks_and_a_long_name_are_made_harmless() -> None:
    assert clean("safe\u202egnp.exe") == "safegnp.exe"
    assert clean("m" * 300) == "m" * 30 + "…" + "m" * 29
