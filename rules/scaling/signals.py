"""The signals as recording rules: when to add replicas, and when one may go.

Each that asks for replicas is 1 where they are needed, so that an autoscaler holds it at 1:

* out: p99 TTFT over the share of the acceptable one that the SLO names, as the least of the
  last minutes: a peak that passes adds none. Above 1 it is at least 1.11, since autoscalers
  let a tenth pass.
* out, gated: the same, but no more than 1 where something other than the queue is known to own
  the excess: more replicas do not help a slow network.
* waiting and KV use: what the engines show, over their targets.
* hold: 1 as long as no replica may go. It falls to 0 after half an hour without a cause to
  scale, while the KV cache of the others has room for one replica's requests, and no rise is
  ahead by the hour that followed a day ago. Flapping ends here: what scales out holds half an
  hour.

Where requests come but too few to know a p99, out is 0; where nothing is known, there is no
sample, and an autoscaler leaves the replicas as they are.
"""

from dataclasses import dataclass
from typing import Final

from tailburn.engine.excess import OWNER_SHARE
from tailburn.engine.names import (
    HOP_LABEL,
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_TTFT_RECORD,
    SCALE_WAITING_RECORD,
    SLO_EXCESS_SHARE_RECORD,
    SLO_LABEL,
    SLO_TOTAL_RATE_RECORD,
    slo_quantile_record,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerts.scale_out import threshold_of
from tailburn.rules.model import Group, Rule
from tailburn.rules.promql import by, duration, number, selector
from tailburn.rules.recording.percentiles import WINDOW
from tailburn.rules.scaling.gauges import Replicas

INTERVAL_S: Final = burn.MINUTE_S
QUIET_S: Final = 30 * burn.MINUTE_S
PAST_TOLERANCE: Final = 1.11  # autoscalers take no step for less than a tenth
_QUIET_TTFT: Final = 0.5  # of what would add replicas
_QUIET_WAITING: Final = 1  # requests in a queue, at any minute of the half hour
_RISE: Final = 1.1
_SEEN: Final = 0.8  # of the evaluations of a window: the rest may have been missed


@dataclass(frozen=True)
class Targets:
    """What a replica should carry at most, on the mean."""

    waiting: float = 5.0  # requests in its queue
    kv_ratio: float = 0.85  # of its KV cache; engines preempt from about 0.9 on


def scales(slo: Slo) -> bool:
    """Whether the SLO asks for replicas, and says of which p99 TTFT it is the sign."""
    return threshold_of(slo) is not None


def group_of(slo: Slo, targets: Targets, replicas: Replicas | None = None) -> Group:
    """The signals of an SLO that `scales`; those of its queue and cache where engines are known.

    They rest on what the rules of the SLO record.
    """
    rules = [_ttft(slo), _out(slo), _gated(slo)]
    if replicas is not None:
        rules += [
            _own(slo, replicas.count, SCALE_REPLICAS_RECORD),
            _own(slo, f"({replicas.waiting})\n/ {number(targets.waiting)}", SCALE_WAITING_RECORD),
            _own(slo, f"({replicas.kv_ratio})\n/ {number(targets.kv_ratio)}", SCALE_KV_RECORD),
        ]
    rules.append(_hold(slo, targets, replicas is not None))
    return Group(f"tailburn-{slo.name}-scaling", INTERVAL_S, tuple(rules))


def _ttft(slo: Slo) -> Rule:
    threshold_s = threshold_of(slo)
    assert threshold_s is not None
    p99 = _recorded(slo, slo_quantile_record(Clock.TTFT, "p99", WINDOW))
    return Rule(f"{p99} / {number(threshold_s)}\nor\n0 * {_requests(slo)}", SCALE_TTFT_RECORD)


def _out(slo: Slo) -> Rule:
    assert slo.scale_out is not None
    for_s = round(slo.scale_out.for_s)
    ratio = _recorded(slo, SCALE_TTFT_RECORD)
    window = f"{ratio}[{duration(for_s)}]"
    seen = f"count_over_time({window}) >= {number(_evaluations(for_s))}"
    least = f"(min_over_time({window}) and {seen})"
    return Rule(
        f"clamp_min({least} > 1, {number(PAST_TOLERANCE)})\nor\n{least}\nor\n0 * {ratio}",
        SCALE_OUT_RECORD,
    )


def _gated(slo: Slo) -> Rule:
    on = _on(slo)
    out = _recorded(slo, SCALE_OUT_RECORD)
    labels = by((SLO_LABEL, *slo.by))
    known = selector(SLO_EXCESS_SHARE_RECORD, {SLO_LABEL: slo.name})
    queue = selector(SLO_EXCESS_SHARE_RECORD, {SLO_LABEL: slo.name, HOP_LABEL: "queue"})
    is_owner = f"max {labels} ({queue}) >= {number(OWNER_SHARE)}"
    return Rule(
        f"{out} unless {on} (max {labels} ({known}) unless {on} {is_owner})\n"
        f"or\nclamp_max({out}, 1)",
        SCALE_GATED_RECORD,
    )


def _hold(slo: Slo, targets: Targets, has_engines: bool) -> Rule:
    ratio = _recorded(slo, SCALE_TTFT_RECORD)
    window = duration(QUIET_S)
    quiet = [
        f"(max_over_time({ratio}[{window}]) < bool {number(_QUIET_TTFT)})",
        f"(count_over_time({ratio}[{window}]) >= bool {number(_evaluations(QUIET_S))})",
        _no_rise_ahead(slo),
    ]
    if has_engines:
        replicas = _recorded(slo, SCALE_REPLICAS_RECORD)
        waiting = _recorded(slo, SCALE_WAITING_RECORD)
        kv = _recorded(slo, SCALE_KV_RECORD)
        short = number(_QUIET_WAITING / targets.waiting)
        quiet += [
            f"(max_over_time({waiting}[{window}]) < bool {short})",
            f"(max_over_time({kv}[{window}]) * {replicas} < bool ({replicas} - 1))",
        ]
    all_quiet = f"\n  * {_on(slo)} ".join(quiet)
    held = f"(0 * {ratio} + 1)"  # no sample where nothing is known now
    return Rule(f"{held} - {_on(slo)} (\n  {all_quiet}\n)\nor\n{held}", SCALE_HOLD_RECORD)


def _no_rise_ahead(slo: Slo) -> str:
    """Whether the coming hour, by the day before, brings no more than a tenth over the last."""
    now, ahead = (_requests(slo, f"[1h]{offset}") for offset in ("", " offset 23h"))
    return f"(({ahead} or 0 * {now}) <= bool {_on(slo)} {number(_RISE)} * {now})"


def _requests(slo: Slo, over: str = "") -> str:
    """Requests a second of the SLO, now or as the mean over a range."""
    recorded = _recorded(slo, f"{SLO_TOTAL_RATE_RECORD}{WINDOW}")
    rate = f"avg_over_time({recorded}{over})" if over else recorded
    return f"max {by((SLO_LABEL, *slo.by))} ({rate})"


def _own(slo: Slo, expr: str, record: str) -> Rule:
    return Rule(expr, record, labels={SLO_LABEL: slo.name})


def _recorded(slo: Slo, record: str) -> str:
    return selector(record, {SLO_LABEL: slo.name})


def _on(slo: Slo) -> str:
    return f"on ({', '.join((SLO_LABEL, *slo.by))})"


def _evaluations(window_s: float) -> int:
    return max(1, round(_SEEN * window_s / INTERVAL_S))
