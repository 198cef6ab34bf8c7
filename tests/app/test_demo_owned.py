"""Which hop the demo says owns what a budget suffers from: by the clock of that budget."""

from pathlib import Path

import pytest

from tailburn.app.answers.owning import Suffers, Times, owned_now
from tailburn.app.demo.burn import Burning, burning
from tailburn.app.demo.compare import suffering
from tailburn.app.demo.saying import in_words, truths
from tailburn.app.slo_files import load_slos
from tailburn.engine.store.api import LogRange, Window
from tailburn.engine.store.parquet import ParquetStore
from tailburn.lab.run.truth import write_truth
from tests.app.rows import RECEIVED_NS, make_rows

MINUTE_NS = 60 * 10**9
N = 100
SHIPPED = Path(__file__).parents[2] / "app" / "demo" / "slo"
BEFORE = Window(RECEIVED_NS - MINUTE_NS, RECEIVED_NS + MINUTE_NS)
NOW = Window(RECEIVED_NS + 9 * MINUTE_NS, RECEIVED_NS + 11 * MINUTE_NS)


def _published(store: ParquetStore, part: int, at_ns: int, queue_s: float, decode_s: float) -> None:
    rows = make_rows(
        received_ns=[at_ns] * N,
        request_id=[f"{part:08x}{i:08x}" for i in range(N)],
        trace_id=[f"{part:016x}{i:016x}" for i in range(N)],
        model=["llama-3.1-70b"] * N,
        streamed=[True] * N,
        prompt_tokens=[100] * N,
        output_tokens=[64] * N,
        ttft_queue_s=[queue_s] * (N // 2) + [0.0] * (N // 2),
        ttft_prefill_s=[0.125] * N,
        decode_decode_s=[decode_s] * N,
    )
    store.publish("requests", rows, LogRange(part, part))


def _burns(store: ParquetStore) -> list[Burning]:
    return burning(store, load_slos([SHIPPED]), NOW.until_ns or 0)


def _suffers(store: ParquetStore, objective: str) -> Suffers:
    """The budget of that name, as if it burnt fastest."""
    found = [b for b in _burns(store) if (b.slo.name, b.objective.name) == ("chat", objective)]
    about = suffering(found, [])
    assert about is not None and about.objective == objective
    return about


def _store(folder: Path, queue_s: float, decode_s: float) -> ParquetStore:
    store = ParquetStore(folder / "store")
    _published(store, 1, RECEIVED_NS, 0.0, 0.5)
    _published(store, 2, RECEIVED_NS + 10 * MINUTE_NS, queue_s, decode_s)
    return store


@pytest.mark.parametrize(
    ("objective", "queue_s", "decode_s", "hop"),
    [
        ("ttft_p95", 2.0, 4.5, "queue"),
        ("tpot_p95", 2.0, 4.5, "decode"),
        ("availability", 0.25, 4.5, "decode"),
        ("availability", 8.0, 0.75, "queue"),
        ("tpot_p95", 2.0, 0.5, None),
        ("ttft_p95", 0.0, 4.5, None),
    ],
)
def test_the_hop_is_that_of_the_clock_which_the_budget_goes_by(
    tmp_path: Path, objective: str, queue_s: float, decode_s: float, hop: str | None
) -> None:
    store = _store(tmp_path, queue_s, decode_s)
    owned = owned_now(store, Times(BEFORE, NOW), _suffers(store, objective))
    assert owned.hop == hop, owned.says
    assert hop is None or hop in owned.says


def test_where_no_budget_burns_what_pages_is_looked_into(tmp_path: Path) -> None:
    store = _store(tmp_path, 0.0, 0.75)
    burns = _burns(store)
    assert all((b.burn or 0.0) < 1 for b in burns)
    page = {"slo": "chat", "objective": "deadline", "alertname": "TailburnDeadlineBurn"}
    about = suffering(burns, [page])
    assert about is not None and (about.slo.name, about.objective) == ("chat", "deadline")
    assert owned_now(store, Times(BEFORE, NOW), about).hop == "decode"


def test_what_is_true_is_what_the_lab_wrote_and_no_knob(tmp_path: Path) -> None:
    truth = {
        "scenario": "S14", "cause": "KV blocks", "severity": "strong", "hop": "queue",
        "verdict": "KV (capacity)", "affected": {"pool": ["main", "code"]},
        "set": {"settings": []},
    }  # fmt: skip
    write_truth(tmp_path, {"truths": [truth]})
    (told,) = truths(tmp_path)
    assert "set" not in told
    assert in_words(told) == (
        "S14, KV blocks (strong; pool main, code); it shows in queue.\n"
        "Right to say of it: KV (capacity)."
    )
