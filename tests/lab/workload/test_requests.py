"""What requests hold: lengths as asked, prefixes that fit, kinds in their shares, changes."""

from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.lab.records import Requests, RequestType
from tailburn.lab.workload import (
    FIGURES,
    KNOBS,
    Change,
    Workload,
    WorkloadError,
    lengths,
    load,
    named,
    ramp,
)
from tailburn.lab.workload.arrive import arrive
from tailburn.lab.workload.clients import NEIGHBOUR, SWEEP
from tailburn.lab.workload.dress import dress, normal_at
from tailburn.lab.workload.figures import LEVELS

MINUTE_NS = 60 * 10**9
EVEN = sorted(name for name, figures in FIGURES.items() if figures.client_weight == 0)


def _hold(r: Requests, workload: Workload) -> None:
    """What must hold of any requests, whatever they are drawn from."""
    clients = workload.clients
    assert (np.diff(r.arrival_ns) >= 0).all()
    assert (r.prompt_tokens >= 1).all() and (r.output_tokens >= 1).all()
    assert (r.output_tokens <= r.max_tokens).all()
    assert ((r.prefix_tokens >= 0) & (r.prefix_tokens < r.prompt_tokens)).all()
    assert ((r.prefix == 0) == (r.prefix_tokens == 0)).all()
    assert ((r.client >= 0) & (r.client < len(clients.names))).all()
    assert (clients.tenant_of[r.client] == r.tenant).all()
    assert (clients.route_of[r.client] == r.route).all()
    assert ((r.tenant >= 0) & (r.tenant < len(clients.tenants))).all()
    for flag in (r.streamed, r.rag, r.structured):
        assert np.isin(flag, (0, 1)).all()
    assert ((r.session != 0) | (r.prefix != r.session) | (r.prefix == 0)).all()


@settings(max_examples=15)
@given(
    name=st.sampled_from(sorted(FIGURES)),
    seed=st.integers(0, 2**63 - 1),
    per_s=st.floats(0.05, 60.0),
    knob=st.sampled_from(sorted(KNOBS)),
    value=st.floats(0.0, 1.0),
)
def test_requests_are_sound_under_any_change(
    name: str, seed: int, per_s: float, knob: str, value: float
) -> None:
    value = max(value, KNOBS[knob][1])
    change = Change(knob, value, 3 * MINUTE_NS, 7 * MINUTE_NS)
    workload = Workload(named(name), seed, per_s, changes=[change])
    _hold(workload.window(0, 12), workload)


@pytest.mark.parametrize("name", EVEN)
def test_length_quantiles_come_back_within_two_percent_of_requests(name: str) -> None:
    figures = FIGURES[name]
    r = Workload(named(name), seed=1, per_s=60.0).window(0, 60)
    wanted = {"prompt_tokens": figures.prompt, "output_tokens": figures.output}
    for column, tokens in wanted.items():
        drawn = getattr(r, column)
        known = zip(LEVELS, tokens, strict=True)
        if column == "prompt_tokens" and figures.prompt_cap_share:
            at_cap = (drawn == figures.prompt_cap).mean()
            assert at_cap == pytest.approx(figures.prompt_cap_share, abs=0.005)
            known = zip(LEVELS[:-1], tokens[:-1], strict=True)
        for level, token in known:
            # Whole numbers: much of the mass can lie on the quantile itself.
            assert (drawn < token).mean() < level + 0.02, (column, level)
            assert (drawn <= token).mean() > level - 0.02, (column, level)


@pytest.mark.parametrize("name", EVEN)
def test_mean_lengths_come_back_within_three_percent(name: str) -> None:
    figures = FIGURES[name]
    r = Workload(named(name), seed=1, per_s=60.0).window(0, 60)
    assert r.prompt_tokens.mean() == pytest.approx(figures.prompt_mean, rel=0.03)
    assert r.output_tokens.mean() == pytest.approx(figures.output_mean, rel=0.03)


def test_lengths_of_one_client_go_together_and_drift_where_asked() -> None:
    r = Workload(named("servegen-m-large"), seed=3, per_s=100.0).window(0, 30)
    busy = [c for c in np.unique(r.client) if (r.client == c).sum() > 500]
    prompts, outputs = (
        [np.median(column[r.client == c]) for c in busy]
        for column in (r.prompt_tokens, r.output_tokens)
    )
    ranks = [np.argsort(np.argsort(x)) for x in (prompts, outputs)]
    assert np.corrcoef(ranks[0], ranks[1])[0, 1] > 0.5
    assert max(prompts) > 3 * min(prompts)


def test_table_of_samples_gives_the_samples_back() -> None:
    seen = np.random.default_rng(1).lognormal(6, 1.2, 50_000)
    row = lengths.from_samples(seen)
    drawn = np.array([lengths.length_at(row, u) for u in (np.arange(50_000) + 0.5) / 50_000])
    for level in (0.01, 0.1, 0.5, 0.9, 0.99, 0.999):
        assert np.quantile(drawn, level) == pytest.approx(np.quantile(seen, level), rel=0.01)
    assert lengths.mean_of(row) == pytest.approx(seen.mean(), rel=0.01)


def test_mixture_draws_from_each_row_by_its_weight() -> None:
    rows = lengths.from_quantiles((0.0, 1.0), np.array([[100.0, 200.0], [1000.0, 2000.0]]))
    mixed = lengths.mixture(rows, np.array([3.0, 1.0]))
    assert lengths.length_at(mixed, 0.70) < 200 and lengths.length_at(mixed, 0.80) > 1000


def test_normal_quantile_is_near_the_true_one() -> None:
    us = np.concatenate([np.geomspace(1e-9, 0.5, 50), 1 - np.geomspace(1e-9, 0.5, 50)])
    assert max(abs(normal_at(u) - NormalDist().inv_cdf(u)) for u in us) < 5e-4


def test_kinds_have_the_shares_of_traffic_asked_for() -> None:
    r = Workload(named("azure-conv"), seed=1, per_s=50.0).window(0, 120)
    share = np.bincount(r.request_type, minlength=5) / len(r)
    for kind, want in FIGURES["azure-conv"].mix.items():
        assert share[kind.request_type] == pytest.approx(want, abs=0.05), kind.name


def test_kinds_send_what_they_say() -> None:
    r = Workload(named("servegen-m-large"), seed=1, per_s=200.0).window(0, 60)
    for kind in FIGURES["servegen-m-large"].mix:
        mine = r.take(r.request_type == kind.request_type)
        error = 5 / np.sqrt(len(mine))
        assert mine.streamed.mean() == pytest.approx(kind.streamed, abs=error)
        assert mine.structured.mean() == pytest.approx(kind.structured, abs=error)
        assert mine.rag.mean() == pytest.approx(kind.rag, abs=error)
        assert (mine.lora >= 0).mean() == pytest.approx(kind.lora, abs=error)
        assert (mine.priority == kind.priority).all()
        assert (mine.session > 0).all() == (kind.turns > 0)


def test_a_later_turn_begins_with_all_of_the_turn_before() -> None:
    r = Workload(named("azure-conv"), seed=1, per_s=20.0).window(0, 180)
    left: dict[int, int] = {}
    later = 0
    rows = zip(r.session, r.prefix, r.prefix_tokens, r.prompt_tokens + r.output_tokens, strict=True)
    for session, prefix, shared, after in rows:
        if session and prefix == session:
            assert left[session] == shared
            later += 1
        elif session:
            assert session not in left
        left[session] = after
    assert later > 0.2 * len(r)


def test_conversations_go_on_as_measured() -> None:
    r = Workload(named("mooncake"), seed=3, start_s=86_400).window(0, 240)
    r = r.take(r.request_type == RequestType.CHAT)
    turns = np.unique(r.session, return_counts=True)[1]
    assert (turns >= 2).mean() == pytest.approx(0.42, abs=0.06)  # WildChat
    order = np.lexsort((r.arrival_ns, r.session))
    gap_s = np.diff(r.arrival_ns[order])[np.diff(r.session[order]) == 0] / 1e9
    assert np.quantile(gap_s, 0.5) == pytest.approx(114, rel=0.3)  # Mooncake
    assert np.quantile(gap_s, 0.9) == pytest.approx(519, rel=0.3)


def test_an_endless_cache_holds_what_mooncakes_holds() -> None:
    r = Workload(named("mooncake"), seed=3, start_s=86_400).window(0, 240)
    cache: dict[int, int] = {}
    hit = np.zeros(len(r))
    for i in range(len(r)):
        prefix, session = int(r.prefix[i]), int(r.session[i])
        hit[i] = min(cache.get(prefix, 0), r.prefix_tokens[i])
        cache[prefix] = max(cache.get(prefix, 0), int(r.prefix_tokens[i]))
        if session:
            cache[session] = int(r.prompt_tokens[i] + r.output_tokens[i])
    assert hit.sum() / r.prompt_tokens.sum() == pytest.approx(0.366, abs=0.06)
    middle = np.quantile(hit / r.prompt_tokens, (0.1, 0.5, 0.9))
    assert middle == pytest.approx((0.03, 0.36, 0.95), abs=0.06)


def _with(*changes: Change) -> Requests:
    return Workload(named("azure-conv"), seed=6, per_s=30.0, changes=changes).window(0, 20)


def _during(r: Requests) -> Requests:
    when = (r.arrival_ns >= 5 * MINUTE_NS) & (r.arrival_ns < 15 * MINUTE_NS)
    return r.take(when)


def _change(knob: str, value: float, scope: str = "all") -> Change:
    return Change(knob, value, 5 * MINUTE_NS, 15 * MINUTE_NS, scope)


def test_more_arrivals_while_the_factor_holds() -> None:
    ratio = len(_during(_with(_change("arrival_factor", 1.6)))) / len(_during(_with()))
    assert ratio == pytest.approx(1.6, rel=0.05)


def test_factors_multiply_and_added_rates_add() -> None:
    twice = _with(_change("arrival_factor", 1.5), _change("arrival_factor", 2.0))
    assert len(_during(twice)) / len(_during(_with())) == pytest.approx(3.0, rel=0.05)
    both = _with(
        _change("added_rate", 4.0, "client:sweep"), _change("added_rate", 3.0, "client:sweep")
    )
    assert len(_during(both)) - len(_during(_with())) == pytest.approx(7 * 600, abs=5 * 65)


def test_prompts_twice_as_long_leave_all_else() -> None:
    quiet, longer = _during(_with()), _during(_with(_change("prompt_factor", 2.0)))
    assert np.array_equal(quiet.arrival_ns, longer.arrival_ns)
    assert np.array_equal(quiet.output_tokens, longer.output_tokens)
    assert longer.prompt_tokens.mean() / quiet.prompt_tokens.mean() == pytest.approx(2, rel=0.05)


def test_outputs_three_times_as_long_leave_prompts() -> None:
    quiet, longer = _during(_with()), _during(_with(_change("output_factor", 3.0)))
    assert np.array_equal(quiet.prompt_tokens, longer.prompt_tokens)
    assert longer.output_tokens.mean() / quiet.output_tokens.mean() > 2.5


def test_a_share_of_long_prompts_is_that_share() -> None:
    r = _during(_with(_change("long_share", 0.01)))
    assert (r.prompt_tokens == FIGURES["azure-conv"].prompt_cap).mean() == pytest.approx(
        0.01, abs=0.004
    )


@pytest.mark.parametrize("knob", ["streamed", "structured", "rag"])
def test_shares_are_those_of_the_change(knob: str) -> None:
    r = _during(_with(_change(knob, 0.3)))
    assert getattr(r, knob).mean() == pytest.approx(0.3, abs=0.02)


def test_adapters_churn_evenly_when_asked() -> None:
    r = _during(_with(_change("lora", 1.0), _change("adapters", 40)))
    assert np.bincount(r.lora, minlength=40).min() > 0.8 * len(r) / 40


def test_scopes_hold_to_kind_client_and_tenant() -> None:
    quiet = _with()
    for scope, mask in (
        ("kind:document", quiet.request_type == RequestType.DOCUMENT),
        ("client:client-0", quiet.client == 0),
        ("tenant:tenant-1", quiet.tenant == 1),
    ):
        r = _with(_change("prompt_floor", 15_000, scope))
        within = (r.arrival_ns >= 5 * MINUTE_NS) & (r.arrival_ns < 15 * MINUTE_NS)
        assert (r.prompt_tokens[mask & within] >= 15_000).all()
        assert np.array_equal(
            r.prompt_tokens[~(mask & within)], quiet.prompt_tokens[~(mask & within)]
        )


def test_sleepers_ask_only_when_woken() -> None:
    workload = Workload(named("azure-conv"), seed=6, per_s=30.0)
    sleepers = [workload.clients.names.index(name) for name in (SWEEP, NEIGHBOUR)]
    assert not np.isin(_with().client, sleepers).any()
    assert not np.isin(_with(_change("arrival_factor", 5.0)).client, sleepers).any()
    woken = _with(_change("added_rate", 2.0, "client:neighbour"))
    assert np.unique(woken.client[np.isin(woken.client, sleepers)]).tolist() == sleepers[1:]


def test_changes_for_all_are_not_for_sleepers() -> None:
    woken = _change("added_rate", 2.0, "client:neighbour")
    alone, beside = _with(woken), _with(woken, _change("prompt_factor", 2.0))
    mine = alone.client == named("azure-conv").clients.names.index(NEIGHBOUR)
    assert np.array_equal(alone.prompt_tokens[mine], beside.prompt_tokens[mine])


def test_a_ramp_grows_evenly_to_the_full_change() -> None:
    full = Change("arrival_factor", 3.0, 0, 100 * MINUTE_NS)
    steps = ramp(full, 60 * MINUTE_NS)
    r = Workload(named("azure-conv"), seed=6, per_s=30.0, changes=steps).window(0, 100)
    quiet = Workload(named("azure-conv"), seed=6, per_s=30.0).window(0, 100)
    ten = [np.bincount(x.arrival_ns // (10 * MINUTE_NS), minlength=10) for x in (r, quiet)]
    assert ten[0] / ten[1] == pytest.approx(
        [1.17, 1.5, 1.83, 2.17, 2.5, 2.83, 3, 3, 3, 3], rel=0.06
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Change("arival_factor", 1, 0, 1), "did you mean arrival_factor"),
        (lambda: Change("rag", 1.5, 0, 1), r"rag = 1.5: want -1 to 1"),
        (lambda: Change("prompt_factor", float("nan"), 0, 1), "prompt_factor = nan"),
        (lambda: Change("prompt_factor", 2, 5, 5), "ends at 5 ns, not after 5 ns"),
        (lambda: ramp(Change("rag", 0.5, 0, 9), 5), "cannot ramp"),
        (lambda: named("azure-chat"), "did you mean azure-"),
        (lambda: _with(_change("rag", 1.0, "tenant:tenant-99")), "no tenant 'tenant-99'"),
        (lambda: _with(_change("rag", 1.0, "chat")), "want all, tenant:NAME"),
        (lambda: Workload(named("mooncake"), 1, per_s=0.0), "want more than 0"),
        (lambda: Workload(named("mooncake"), 1, start_s=61), "multiple of 600 s"),
    ],
)
def test_what_names_nothing_is_refused_with_what_is_near(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(WorkloadError, match=says):
        make()


def test_the_hot_loops_are_compiled_for_one_set_of_types_only(tmp_path: Path) -> None:
    # A second set would cost seconds in the first minute of a run.
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,10,1\n1,20,2\n")
    rates = tmp_path / "rates.csv"
    rates.write_text("client,ts,rate,cv,pat\n0,0,2.0,1.5,Gamma\n1,600,2.0,1.5,Weibull\n")
    add = Change("added_rate", 1.0, 0, MINUTE_NS)
    for profile in (named("azure-code"), named("servegen-m-mid"), load(trace), load(rates)):
        Workload(profile, seed=1, per_s=1.0, changes=[add]).window(0, 2)
    loops: list[Any] = [arrive, dress]
    assert [len(loop.signatures) for loop in loops] == [1, 1]


def test_indices_of_routes_mean_the_same_in_every_workload() -> None:
    routes = {named(name).clients.routes for name in FIGURES}
    assert routes == {("chat", "completions", "rag", "agents", "batch")}


def test_conversations_end_within_the_hour() -> None:
    r = Workload(named("azure-conv"), seed=1, per_s=20.0).window(0, 240)
    r = r.take(r.session != 0)
    ids, which = np.unique(r.session, return_inverse=True)
    first = np.full(len(ids), np.iinfo(np.int64).max)
    last = np.zeros(len(ids), np.int64)
    np.minimum.at(first, which, r.arrival_ns)
    np.maximum.at(last, which, r.arrival_ns)
    assert 1800 < (last - first).max() / 1e9 < 3600
