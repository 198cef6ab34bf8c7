"""The commands that ask a store."""

import json
from pathlib import Path
from typing import Any

import pytest

from tailburn.engine.schema import REQUESTS
from tests.app.conftest import Run
from tests.app.rows import RECEIVED_NS, TRACE


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def by(rows: list[dict[str, Any]], **values: object) -> dict[str, Any]:
    (row,) = [r for r in rows if values.items() <= r.items()]
    return row


def test_tails_give_quantiles_with_their_error(run: Run, store: Path) -> None:
    rows = lines(run("tails", "--store", store, "--json").out)
    row = by(rows, clock="ttft_client_s")
    assert row["count"] == 20 and row["unmeasured"] == 0
    assert row["p50_s"] == pytest.approx(0.25, rel=row["error_ratio"])
    assert row["max_s"] == 2.25 and 0 < row["error_ratio"] < 0.011
    assert "p999_s" in row["thin"] and "p50_s" not in row["thin"]
    assert by(rows, clock="e2e_client_s")["p50_s"] is None


def test_tails_group_by_any_column_and_keep_filters(run: Run, store: Path) -> None:
    rows = lines(run("tails", "--by", "node,model", "--store", store, "--json").out)
    counts = {(r["node"], r["model"]): r["count"] for r in rows if r["clock"] == "ttft_client_s"}
    assert counts == {("a", "llama"): 5, ("b", "llama"): 7, ("b", "qwen"): 8}
    asked = ["tails", "--store", store, "--json", "--model", "llama", "--where", "node=b"]
    assert by(lines(run(*asked).out), clock="ttft_client_s")["count"] == 7


def test_tails_can_be_exact(run: Run, store: Path) -> None:
    rows = lines(run("tails", "--exact", "--store", store, "--json").out)
    row = by(rows, clock="ttft_client_s")
    assert (row["p50_s"], row["error_ratio"], row["source"]) == (0.25, 0, "rows")


def test_tails_show_what_is_unmeasured_and_what_is_thin(run: Run, store: Path) -> None:
    answer = run("tails", "--store", store, "--by", "model")
    first = next(line for line in answer.out.splitlines() if "ttft_client_s" in line)
    assert "llama" in first and "~" in first and "± 1.1 %" in first
    assert "e2e_client_s" not in answer.out
    assert "rests on less than one request" in answer.err


def test_requests_have_the_columns_of_the_table(run: Run, store: Path) -> None:
    rows = lines(run("requests", "--store", store, "--json").out)
    assert set(rows[0]) == set(REQUESTS.names) - {"digests", "tombstone"}
    assert [r["request_id"] for r in rows] == [f"{i:016x}" for i in range(20)]
    assert rows[7]["ttft_client_s"] == 2.25 and rows[7]["e2e_client_s"] is None


def test_a_window_is_of_receive_times(run: Run, store: Path) -> None:
    def count(*window: str) -> int:
        return len(lines(run("requests", "--store", store, "--json", *window).out))

    moment = "2026-12-01T17:10:00"  # RECEIVED_NS
    assert RECEIVED_NS == 1_796_145_000 * 10**9
    assert count("--since", moment) == 20
    assert count("--until", moment) == 0
    assert count("--since", "2026-12-01T18:10:00.5+01:00") == 0


def test_hops_add_up_to_their_clock(run: Run, store: Path) -> None:
    rows = lines(run("hops", "--store", store, "--json").out)
    for clock, mean_s in (("ttft", 0.35), ("decode", 1.0)):
        total = by(rows, clock=clock, hop="total")
        parts = [r["total_ns"] for r in rows if r["clock"] == clock and r["hop"] != "total"]
        assert sum(parts) == total["total_ns"]
        assert total["mean_s"] == pytest.approx(mean_s)


def test_the_slowest_are_set_against_the_rest_and_one_hop_owns_the_excess(
    run: Run, store: Path
) -> None:
    rows = lines(run("hops", "--slowest", "5%", "--store", store, "--json").out)
    total = by(rows, clock="ttft", hop="total")
    parts = [r["excess_ns"] for r in rows if r["clock"] == "ttft" and r["hop"] != "total"]
    assert sum(parts) == total["excess_ns"] == 2_000_000_000
    assert (total["slow"], total["rest"], total["owner"]) == (1, 19, "gateway")
    shown = run("hops", "--slowest", "0.05", "--store", store).out
    assert "gateway owns the excess. Look next: the gateway:" in shown
    assert "100.0 %" in shown and "2.00 s" in shown


def test_a_trace_is_drawn_with_hops_offsets_and_breakdown(run: Run, store: Path) -> None:
    drawn = run("trace", TRACE, "--store", store).out
    engine = next(line for line in drawn.splitlines() if "llm_request" in line)
    assert "not recognised" in engine and "+100 ms" in engine and "150 ms" in engine
    assert engine.index("llm_request") > drawn.splitlines()[3].index("chat")
    assert "corrected by up to 3.00 ms ± 9.00 ms" in drawn
    assert "prefill" in drawn and "125 ms" in drawn


def test_a_trace_is_found_by_a_request_s_id_too(run: Run, store: Path) -> None:
    rows = lines(run("trace", "0" * 16, "--store", store, "--json").out)
    assert [r["type"] for r in rows] == ["span", "span", "request"]
    assert rows[0]["attributes"] == {"gen_ai.usage.output_tokens": 64.0}
    assert rows[1]["parent_span_id"] == rows[0]["span_id"]


def test_no_text_of_a_sender_reaches_the_terminal_as_more_than_text(run: Run, store: Path) -> None:
    drawn = run("trace", TRACE, "--store", store).out
    assert "chat \\x1b]0;owned\\x07[red]llama" in drawn
    as_json = run("trace", TRACE, "--store", store, "--json").out
    assert as_json.isascii() and not any(ord(c) < 32 for c in as_json.replace("\n", ""))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tails", "--by", "colour"], "can't group by 'colour'"),
        (["requests", "--where", "colour=red"], "requests has no column 'colour'"),
        (["requests", "--where", "model"], "--where 'model': want key=value"),
        (["requests", "--since", "soon"], "--since 'soon': want a duration such as 90s"),
        (["tails", "--since", "1h", "--until", "2h"], "--since 1h is not before --until 2h"),
        (["tails", "--since", "0001-01-01"], "want a time after 1970"),
        (["hops", "--slowest", "all"], "--slowest 'all': want a share such as 5%"),
        (["trace", "xyz"], "'xyz': want a trace id (32 hex digits) or a request id (16)"),
        (["trace", "f" * 32], "is not in the store"),
        (["trace", "f" * 16], "is not in the store"),
    ],
)
def test_what_can_t_be_answered_is_said_in_one_line(
    run: Run, store: Path, arguments: list[str], message: str
) -> None:
    answer = run(*arguments, "--store", store)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err and answer.err.count("\n") == 1


def test_without_a_store_or_without_data_it_is_said(run: Run, store: Path) -> None:
    assert "no store here" in run("tails", "--store", store / "gone").err
    for command in ("tails", "requests", "hops"):
        answer = run(command, "--store", store, "--model", "nobody's")
        assert (answer.code, answer.out) == (0, "")
        assert "no data" in answer.err
