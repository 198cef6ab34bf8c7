"""Telemetry faults: clocks, spans, bodies and scrapes told wrongly, each for its time alone."""

from dataclasses import dataclass
from importlib import resources

import numpy as np
import pytest

from tailburn.lab.faults.catalogue import scenario
from tailburn.lab.faults.scenario import FaultError, Severity, TelemetryFault
from tailburn.lab.faults.telemetry import KINDS, KV_USAGE, ScrapeFaults, SpanFaults
from tailburn.lab.telemetry.spans import SpanTelemetry
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tests.lab.faults.trials import S, Trial, e, rising, trial_of
from tests.lab.telemetry.decoded import Span, spans_of

FLEET = trial_of("N6").fleet


def _fault(
    kind: str, value: float, start_s: float, end_s: float, scope: str = "all"
) -> TelemetryFault:
    return TelemetryFault(kind, value, scope, int(start_s * S), int(end_s * S))


@dataclass(frozen=True)
class _Target:
    name: str = "vllm-0"
    kind: str = "engine"
    host: str = "node-0"


TARGET = _Target()
BODIES = [(i * S // 10, b"%d" % i) for i in range(1_000)]


def _passed(*faults: TelemetryFault, parts: int = 7, seed: int = 1) -> list[tuple[int, bytes]]:
    broken = SpanFaults(faults, FLEET, seed)
    found = []
    for part in np.array_split(np.arange(len(BODIES)), parts):
        found += list(broken.of([BODIES[i] for i in part]))
    return found + list(broken.finish())


def test_without_faults_bodies_pass_as_they_came() -> None:
    assert _passed() == BODIES
    assert _passed(_fault("body_late", 3.0, 1_000, 2_000)) == BODIES


def test_late_bodies_come_all_and_in_the_order_in_which_they_arrive() -> None:
    found = _passed(_fault("body_late", 2.0, 20, 60))
    assert sorted(body for _, body in found) == sorted(body for _, body in BODIES)
    at = [at for at, _ in found]
    assert at == sorted(at)
    came = {body: at for at, body in found}
    late = np.array([(came[body] - at) / 1e9 for at, body in BODIES])
    inside = np.array([20 * S <= at < 60 * S for at, _ in BODIES])
    assert not late[~inside].any()
    assert late[inside].mean() == pytest.approx(2.0, rel=0.25)
    assert found == _passed(_fault("body_late", 2.0, 20, 60), parts=91)


def test_bodies_wait_no_longer_than_they_are_late() -> None:
    broken = SpanFaults([_fault("body_late", 2.0, 0, 100)], FLEET, 1)
    whole = _passed(_fault("body_late", 2.0, 0, 100))
    for part in np.array_split(np.arange(len(BODIES)), 7):
        came = list(broken.of([BODIES[i] for i in part]))
        last_ns = BODIES[part[-1]][0]
        due = [body for body in whole if body[0] <= last_ns]
        assert due[: len(came)] == came
        whole = whole[len(came) :]
        assert all(at > last_ns - S for at, _ in due[len(came) :])


def test_bodies_that_come_twice_are_the_same_to_the_byte() -> None:
    found = [body for _, body in _passed(_fault("body_twice", 0.2, 0, 50))]
    counts = np.array([found.count(body) for _, body in BODIES])
    assert set(counts.tolist()) == {1, 2}
    assert np.mean(counts[:500] == 2) == pytest.approx(0.2, abs=0.06)
    assert not np.any(counts[500:] == 2)


def _told(*faults: TelemetryFault) -> dict[bytes, Span]:
    """The spans of some attempts, by id."""
    attempts = trial_of("N6").quiet.attempts.take(slice(0, 400))
    spans = SpanTelemetry(wiring_of(FLEET), seed=1)
    broken = SpanFaults(faults, FLEET, 1)
    broken.set_up(spans)
    bodies = [*broken.of(spans.feed(attempts, 0)), *broken.of(spans.finish()), *broken.finish()]
    return {span.id: span for span in spans_of(bodies)}


def _host(span: Span) -> str:
    return str(span.resource.get("k8s.node.name", ""))


def test_a_clock_is_wrong_on_its_host_and_for_its_time() -> None:
    right = _told()
    wrong = _told(
        _fault("clock_skew", 0.2, 610, 620, "host:node-0"),
        _fault("clock_skew", -0.05, 0, 9_999, "zone:zone-b"),
    )
    assert right.keys() == wrong.keys()
    zone_b = [h.name for h in FLEET.hosts if h.zone == "zone-b"]
    moved = {"node-0": 0, "zone-b": 0}
    for key, span in right.items():
        ahead = (wrong[key].start - span.start) / 1e9
        true_s = span.start / 1e9
        if _host(span) == "node-0" and 610.1 < true_s < 619.9:
            assert ahead == pytest.approx(0.2)
            moved["node-0"] += 1
        elif _host(span) in zone_b:
            assert ahead == pytest.approx(-0.05)
            moved["zone-b"] += 1
        elif not 609.9 < true_s < 620.1:
            assert ahead == 0.0
    assert min(moved.values()) > 20


def test_losses_that_overlap_lose_what_either_would() -> None:
    whole = len(_told())
    assert len(_told(_fault("span_loss", 0.3, 0, 9_999))) / whole == pytest.approx(0.7, abs=0.04)
    both = _told(_fault("span_loss", 0.3, 0, 9_999), _fault("span_loss", 0.5, 0, 9_999))
    assert len(both) / whole == pytest.approx(0.35, abs=0.04)
    assert len(_told(_fault("span_loss", 1.0, 0, 500))) == whole


EVERY = [i * 15 * S for i in range(400)]


def _answers(*faults: TelemetryFault, target: _Target = TARGET) -> list[float | None]:
    broken = ScrapeFaults(faults, seed=4)
    return [broken.answers(target, at) for at in EVERY]


def test_scrapes_go_without_answer_in_their_time_and_the_same_each_time() -> None:
    gap = _fault("scrape_gap", 0.3, 1_500, 4_500, "kind:engine")
    answers = _answers(gap)
    missing = np.array([a is None for a in answers])
    inside = np.array([1_500 * S <= at < 4_500 * S for at in EVERY])
    assert missing[inside].mean() == pytest.approx(0.3, abs=0.08)
    assert not missing[~inside].any()
    assert answers == _answers(gap)
    assert _answers(gap, target=_Target("node-0", "node")) == [0.0] * 400
    other = [a is None for a in _answers(gap, target=_Target("vllm-1"))]
    assert other != missing.tolist()


def test_a_late_answer_is_none_beyond_the_time_out() -> None:
    answers = _answers(_fault("scrape_late", 3.0, 0, 9_999, "host:node-0"))
    told = np.array([a for a in answers if a is not None])
    assert told.max() < 10.0 and told.mean() == pytest.approx(3.0 - 10.0 * 0.037, abs=0.4)
    assert answers.count(None) / 400 == pytest.approx(np.exp(-10 / 3), abs=0.03)


PAGE = """# HELP vllm:prompt_tokens_total Tokens.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model_name="m"} %s
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m"} 0.25
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1"} %s
vllm:time_to_first_token_seconds_sum %s
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 7.0
"""


def _numbers(page: bytes) -> list[float]:
    return [float(x.split()[-1]) for x in page.decode().splitlines() if x[0] != "#"]


def test_counters_begin_anew_and_gauges_do_not() -> None:
    broken = ScrapeFaults([_fault("counter_reset", 1.0, 40, 41)], seed=1)
    shown = []
    for i in range(5):
        page = (PAGE % (100.0 * i, 10.0 * i, 1.5 * i)).encode()
        shown.append(_numbers(broken.text(TARGET, i * 15 * S, page)))
    assert [row[0] for row in shown] == [0.0, 100.0, 200.0, 100.0, 200.0]
    assert [row[2] for row in shown] == [0.0, 10.0, 20.0, 10.0, 20.0]
    assert [row[3] for row in shown] == [0.0, 1.5, 3.0, 1.5, 3.0]
    assert all(row[1] == 0.25 and row[4] == 7.0 for row in shown)


def test_a_true_restart_after_a_reset_ends_it() -> None:
    broken = ScrapeFaults([_fault("counter_reset", 1.0, 40, 41)], seed=1)
    true = [100.0, 200.0, 300.0, 400.0, 5.0, 90.0, 350.0]
    shown = [broken.value(TARGET, i * 15 * S, "x_total", "", v, True) for i, v in enumerate(true)]
    assert shown == [100.0, 200.0, 300.0, 100.0, 5.0, 90.0, 350.0]


def test_pages_and_columns_say_the_same_in_any_order() -> None:
    faults = [_fault("counter_reset", 1.0, 40, 41), _fault("kv_stuck", 0.0, 20, 50)]
    broken = ScrapeFaults(faults, seed=1)
    series = [
        ("vllm:prompt_tokens_total", '{model_name="m"}', True),
        ("vllm:kv_cache_usage_perc", '{model_name="m"}', False),
        ("vllm:time_to_first_token_seconds_bucket", '{le="0.1"}', True),
        ("vllm:time_to_first_token_seconds_sum", "", True),
        ("vllm:num_requests_running", '{model_name="m"}', False),
    ]
    for i in [0, 1, 2, 3, 4, 1, 3]:
        page = (PAGE % (100.0 * i, 10.0 * i, 1.5 * i)).encode()
        true = _numbers(page)
        columns = [
            broken.value(TARGET, i * 15 * S, name, labels, value, counter)
            for (name, labels, counter), value in zip(series, true, strict=True)
        ]
        assert _numbers(broken.text(TARGET, i * 15 * S, page)) == columns
        assert columns[1] == (0.0 if i in (2, 3) else 0.25)
    assert [broken.touches(TARGET, name, counter) for name, _, counter in series] == [
        True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            _fault("clock_skow", 1.0, 0, 1),
            "no telemetry fault 'clock_skow'; did you mean clock_skew",
        ),
        (_fault("span_loss", 1.5, 0, 1), r"span_loss = 1.5: want 0 to 1 \(share\)"),
        (_fault("span_loss", 0.5, 1, 1), "ends at 1000000000 ns, not after 1000000000 ns"),
        (_fault("span_loss", 0.5, 0, 1, "host:node-0"), "scope 'host:node-0'; want all"),
        (_fault("clock_skew", 0.5, 0, 1, "rack:1"), "want all, host:NAME or zone:NAME of front-1"),
    ],
)
def test_what_no_telemetry_fault_can_be_is_refused(fault: TelemetryFault, says: str) -> None:
    with pytest.raises(FaultError, match=says):
        SpanFaults([fault], FLEET, 1)


@pytest.mark.parametrize("stack", ["vllm", "sglang", "trtllm", "dynamo_worker"])
def test_each_engine_shows_a_usage_that_can_be_stuck(stack: str) -> None:
    page = (
        resources.files("tailburn.lab.telemetry.metrics") / "pages" / f"{stack}.prom"
    ).read_bytes()
    names = {line.split(b"{")[0].split()[0] for line in page.splitlines() if line[:1].isalpha()}
    assert names & set(KV_USAGE)


def _usages_told(trial: Trial) -> list[float]:
    """The KV usage that a replica shows, scrape by scrape, under a fault."""
    seen = trial.medium.on(trial.fleet.replicas[0].name)
    broken = ScrapeFaults(seen.fault.telemetry, seed=4)  # type: ignore[union-attr]
    true = seen.kv_used[:, 0].tolist()
    at = [600 * S + i * 3 * S for i in range(len(true))]
    return [
        broken.value(TARGET, t, "vllm:kv_cache_usage_perc", "", u, False)
        for t, u in zip(at, true, strict=True)
    ]


def test_a_stuck_gauge_shows_0_beside_hits_and_a_full_cache_preempts() -> None:
    stuck, full = trial_of("N6"), trial_of("S13")
    assert set(_usages_told(stuck)) == {0.0}
    assert stuck.medium.count(e.PREFIX_HITS) > 0 == stuck.medium.count(e.N_PREEMPTIONS)
    assert max(_usages_told(full)) >= 0.98
    assert full.medium.count(e.N_PREEMPTIONS) > 100


def test_every_kind_says_what_it_does() -> None:
    for name, kind in KINDS.items():
        assert kind.meaning and kind.unit and kind.low <= kind.high, name
        assert kind.of in ("host", "spans", "target"), name


def test_the_control_sets_each_of_its_kinds_harder_with_its_severity() -> None:
    one = scenario("N6")
    by = []
    for severity in Severity:
        told = one.fault(FLEET, severity, 0, 600 * S, seed=1).telemetry
        by.append({f.kind: abs(f.value) for f in told})
        skews = {f.value for f in told if f.kind == "clock_skew"}
        assert max(skews) == -min(skews) > 0.0
    for kind in ("clock_skew", "span_loss", "body_twice", "body_late", "scrape_gap", "scrape_late"):
        assert rising(*(values[kind] for values in by)), kind
    assert by[1]["clock_skew"] == 0.2 and by[1]["span_loss"] == 0.3
