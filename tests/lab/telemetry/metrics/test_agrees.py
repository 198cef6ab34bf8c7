"""What pages count is what happened: requests, their times and tokens, restarts and faults."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.lab.fleet import arrays_of
from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.metrics.engines import Engines
from tailburn.lab.telemetry.metrics.rows import Rows
from tailburn.lab.telemetry.metrics.tally import Pending, Seen, Tally
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.samples import Samples
from tests.lab.telemetry.metrics.running import (
    Run,
    column,
    halves,
    joined,
    last_of,
    last_text,
    parsed,
    run,
    target,
    value,
    with_stacks,
)


def _finished(a: Attempts, until_ns: int, replica: int) -> Attempts:
    done = (a.engine_last >= 0) & (a.aborted < 0) & (a.replica == replica)
    return a.take(done & (a.engine_last <= until_ns))


def _histogram(text: bytes, name: str) -> tuple[list[float], list[float], float]:
    family = parsed(text)[name]
    buckets = [s for s in family.samples if s.name.endswith("_bucket")]
    total = [s.value for s in family.samples if s.name.endswith("_sum")]
    return [float(s.labels["le"]) for s in buckets], [s.value for s in buckets], total[0]


@pytest.mark.parametrize("hold_s", [0, 45], ids=["told at once", "held back"])
def test_latency_histograms_agree_with_the_requests_that_ended(hold_s: int) -> None:
    here = run()
    scrapes = last_of(here.scrapes(hold_s=hold_s))
    at = int(scrapes.at_ns[-1])
    for replica in range(len(here.fleet.replicas)):
        text = scrapes.text(target(scrapes, f"vllm-{replica}"), len(scrapes) - 1)
        assert text is not None
        a = _finished(here.all, at, replica)
        assert len(a) > 100
        e2e = (a.engine_last - a.engine_in) / 1e9
        decode = (a.engine_last - a.engine_first) / 1e9
        queue = (a.scheduled - a.queued) / 1e9
        prefill = (a.prefill_end - a.scheduled) / 1e9
        for name, took in (
            ("e2e_request_latency", e2e),
            ("request_queue_time", queue),
            ("request_prefill_time", prefill),
            ("request_decode_time", decode),
            ("request_inference_time", prefill + decode),
        ):
            bounds, heights, total = _histogram(text, f"vllm:{name}_seconds")
            assert heights == [float(np.sum(took <= bound)) for bound in bounds], name
            assert total == pytest.approx(took.sum(), rel=1e-9, abs=1e-9), name
        # Gaps: one for each output after the first, together the decode time.
        bounds, heights, total = _histogram(text, "vllm:inter_token_latency_seconds")
        assert heights[-1] == np.sum(np.maximum(a.decode_steps - 1, 0))
        assert total == pytest.approx(decode.sum())
        assert value(text, "vllm:request_success_total", finished_reason="length") + value(
            text, "vllm:request_success_total", finished_reason="stop"
        ) == len(a)
        assert value(text, "vllm:request_generation_tokens_sum") == a.output_done.sum()


def test_first_tokens_are_counted_when_they_came_if_scrapes_are_held_back() -> None:
    here = run()
    scrapes = here.scrapes(hold_s=60)[1]
    a, row = here.all, len(scrapes) - 1
    at = int(scrapes.at_ns[row])
    seen = (a.engine_first >= 0) & (a.engine_first <= at) & (a.aborted < 0) & (a.replica == 0)
    text = scrapes.text(target(scrapes, "vllm-0"), row)
    assert text is not None
    _, heights, total = _histogram(text, "vllm:time_to_first_token_seconds")
    ttft = (a.engine_first - a.engine_in)[seen & (a.engine_last >= 0)] / 1e9
    assert heights[-1] == len(ttft)
    assert total == pytest.approx(ttft.sum())


def test_token_instants_are_the_gaps_where_they_are_known() -> None:
    """Without them the longest gap and the mean of the others stand for all."""
    here = run()
    a = _finished(here.all, int(here.samples[-1].at_ns[-1]), 0)
    text = _last_text(here, "vllm-0")
    bounds, heights, _ = _histogram(text, "vllm:inter_token_latency_seconds")
    longest = np.where(a.decode_steps > 1, a.itl_max_ns, 0) / 1e9
    above = heights[-1] - heights[bounds.index(0.1)]
    assert above >= np.sum(longest > 0.1)


def _last_text(here: Run, name: str, **stacks: str) -> bytes:
    return last_text(here.scrapes(with_stacks(here.fleet, **stacks)), name)


def test_gateway_and_router_count_the_requests_that_passed() -> None:
    here = run()
    a = here.all
    at = int(here.samples[-1].at_ns[-1])
    ok = (a.outcome == 0) & (a.gateway == 0) & (a.gateway_last >= 0) & (a.gateway_last <= at)
    text = _last_text(here, "gateway-1")
    assert value(text, "litellm_request_total_latency_metric_count") == ok.sum()
    took = (a.gateway_last - a.gateway_in)[ok].sum() / 1e9
    assert value(text, "litellm_request_total_latency_metric_sum") == pytest.approx(took)
    router = _last_text(here, "main-router", router="smg")
    sent = (a.router_out >= 0) & (a.router_out <= at)
    found = [
        s.value for s in parsed(router)["smg_worker_requests"].samples
    ]  # fmt: skip
    assert sum(found) == sent.sum()


def test_counters_never_fall_and_a_feed_of_minutes_is_one_of_the_whole() -> None:
    here = run()
    whole = Run(here.fleet, (here.all,), (type(here.samples[0]).join(list(here.samples)),))
    cut = [one for one in here.scrapes(hold_s=10) if len(one)]
    once = [one for one in whole.scrapes() if len(one)]
    assert sum(map(len, cut)) == sum(map(len, once)) == 12
    for one in cut[0].targets:
        values = np.concatenate([scrapes.values[one.name] for scrapes in cut])
        kinds = [s.kind for s in cut[0].pages[one.name].series]
        grows = ("counter", "histogram", "summary")
        counters = [i for i, kind in enumerate(kinds) if kind in grows]
        fell = np.diff(values[:, counters], axis=0) < 0
        wrong = [cut[0].pages[one.name].series[counters[i]].name for i in np.nonzero(fell)[1]]
        assert not wrong, (one.name, set(wrong))
        if one.kind not in ("engine", "gateway", "router", "nccl"):
            np.testing.assert_allclose(values, once[0].values[one.name], rtol=1e-9)


def test_a_replica_that_restarts_counts_anew_and_takes_no_connection_while_it_loads() -> None:
    here = run((("replica_down", 1.0, "vllm-0", 60, 90),), minutes=6)
    scrapes = here.scrapes()
    names = ("vllm:generation_tokens_total", "vllm:e2e_request_latency_seconds_count")
    table = joined(scrapes, ("up", *names))
    up = column(table, "up", "vllm-0")
    assert up[:3] == [1.0] * 3 and 0.0 in up and up[-1] == 1.0
    assert column(table, "up", "vllm-1") == [1.0] * 24
    for metric in names:
        counted = np.array(column(table, metric, "vllm-0"))
        assert len(counted) == sum(up)
        assert np.sum(np.diff(counted) < 0) == 1, metric
    down = [i for i, one in enumerate(up) if not one]
    last = scrapes[down[0] // 4]
    assert last.text(target(last, "vllm-0"), down[0] % 4) is None


def test_split_pools_count_their_own_half() -> None:
    here = run(fleet=halves())
    a = here.all
    at = int(here.samples[-1].at_ns[-1])
    prefill = _last_text(here, "prefill-0", engine="vllm")
    decode = _last_text(here, "decode-0", engine="vllm")
    replica = len(here.fleet.pools[0].replicas)
    mine = (a.prefill_replica == replica) & (a.prefill_end >= 0) & (a.prefill_end <= at)
    mine &= (a.engine_last >= 0) & (a.aborted < 0)
    assert value(prefill, "vllm:request_generation_tokens_sum") == mine.sum()
    moved = (a.replica == 0) & (a.kv_transfer_end >= 0) & (a.kv_transfer_end <= at)
    moved &= (a.engine_last >= 0) & (a.aborted < 0)
    assert value(decode, "vllm:nixl_xfer_time_seconds_count") == moved.sum()
    took = (a.kv_transfer_end - a.kv_transfer_start)[moved].sum() / 1e9
    assert value(decode, "vllm:nixl_xfer_time_seconds_sum") == pytest.approx(took)
    assert "nixl" not in prefill.decode()


_SIZES = st.floats(0, 10) | st.sampled_from((0.5, 2.0, 7.0))
_TIMES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2), _SIZES), max_size=60)


@given(seen=_TIMES, cuts=st.sets(st.integers(1, 8), max_size=4))
def test_tallies_do_not_depend_on_how_feeds_are_cut(
    seen: list[tuple[int, int, float]], cuts: set[int]
) -> None:
    at = np.arange(10, 101, 10)
    bounds = (0.5, 2.0, 7.0)
    tally, pending = Tally(bounds, 3), Pending()
    began = np.full((len(at), 3), -1)
    edges = [0, *sorted(cuts), len(at)]
    counts, sums = [], []
    for first, last in zip(edges, edges[1:], strict=False):
        mine = [s for s in seen if (at[first - 1] if first else -1) < s[0] <= at[last - 1]]
        pending.add(_seen(mine))
        anew = np.zeros((last - first, 3), np.bool_)
        due = pending.until(int(at[last - 1]))
        found = tally.take(due, at[first:last], began[first:last], anew)
        counts.append(found[0])
        sums.append(found[1])
    told = np.concatenate(counts)
    for row, until in enumerate(at):
        for who in range(3):
            told_of = [size for time, at_, size in seen if time <= until and at_ == who]
            # A bound counts what is no larger than it.
            expected = np.bincount(np.searchsorted(bounds, told_of, "left"), minlength=4)
            assert told[row, who].tolist() == expected[:4].tolist()
            assert np.concatenate(sums)[row, who] == pytest.approx(sum(told_of))


def _seen(of: list[tuple[int, int, float]]) -> Seen:
    return Seen.of(
        np.array([s[0] for s in of], np.int64),
        np.array([s[1] for s in of], np.int64),
        np.array([s[2] for s in of], np.float64),
    )


def test_gauges_of_vllm_stay_as_they_were_when_all_requests_are_given_up() -> None:
    """They are set by steps that had outputs; the next step that has some sets them again."""
    here = run()
    engines = Engines(here.fleet, arrays_of(here.fleet))
    rows = [here.samples[0].rows(slice(i, i + 1)) for i in range(4)]
    engine = np.stack([rows[3].engine[0]] * 5)
    engine[1:3, 0, c.RUNNING_COUNT] = engine[1:3, 0, c.WAITING_COUNT] = 0
    engine[1:3, 0, c.CLEAN] = engine[1:3, 0, c.BLOCKS]
    engine[1:3, 0, c.CACHE] = 0
    engine[1:, 0, c.N_ABORTED] += 9
    engine[3:, 0, c.STEPS] += 40
    engine[3:, 0, c.N_FINISHED] += 1
    one = rows[3]
    arrays = [np.arange(5) * 15 * 10**9, engine]
    arrays += [np.concatenate([getattr(one, name)] * 5) for name in
               ("engine_real", "replicas", "stations", "gateways", "pools")]  # fmt: skip
    told = engines.signals(Rows(Samples.of(arrays), one, 0))
    true, shown = np.asarray(told["kv_usage"][0]), np.asarray(told["shown_kv_usage"][0])
    assert true[0] > 0 and true[1] == true[2] == 0
    assert shown.tolist() == [true[0], true[0], true[0], true[3], true[4]]
    assert np.asarray(told["shown_running"][0])[1] == engine[0, 0, c.RUNNING_COUNT] > 0


def test_a_tally_forgets_what_a_process_saw_that_is_gone() -> None:
    """Also what is told of it only after the next one has begun."""
    tally = Tally((1.0,), 1)
    at, began = np.array([10, 20, 30]), np.array([[-1], [15], [15]])
    anew = np.array([[False], [True], [False]])
    seen = _seen([(5, 0, 0.5), (12, 0, 0.5), (18, 0, 3.0), (25, 0, 0.5)])
    counts, sums = tally.take(seen, at, began, anew)
    assert counts[:, 0].tolist() == [[1, 0], [0, 1], [1, 1]]
    assert sums[:, 0].tolist() == [0.5, 3.0, 3.5]
    late, _ = tally.take(_seen([(13, 0, 0.5)]), np.array([40]), began[-1:], anew[-1:])
    assert late[0, 0].tolist() == [1, 1]
