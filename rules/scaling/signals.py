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

from tailburn.engine.evaluation.windows import DAY_S, SAMPLED_S
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
from tailburn.engine.scaling.terms import (
    AHEAD_S,
    INTERVAL_S,
    PAST_TOLERANCE,
    QUIET_S,
    QUIET_TTFT,
    RISE,
    Targets,
    Terms,
    evaluations,
)
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerts.scale_out import threshold_of
from tailburn.rules.model import Group, Rule
from tailburn.rules.promql import by, duration, number, selector
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW
from tailburn.rules.recording.rates import sampled_record
from tailburn.rules.scaling.gauges import Replicas


def scales(slo: Slo) -> bool:
    """Whether the SLO asks for replicas, and says of which p99 TTFT it is the sign."""
    return threshold_of(slo) is not None


def terms_of(slo: Slo, targets: Targets | None = None) -> Terms | None:
    """What both faces of an SLO's signals rest on; None where it does not ask for replicas."""
    threshold_s = threshold_of(slo)
    if threshold_s is None or slo.scale_out is None:
        return None
    for_s = round(slo.scale_out.for_s)
    return Terms(slo, threshold_s, for_s, SAMPLES["p99"], targets or Targets())


def group_of(slo: Slo, targets: Targets, replicas: Replicas | None = None) -> Group:
    """The signals of an SLO that `scales`; those of its queue and cache where engines are known.

    They rest on what the rules of the SLO record. In process they are `engine.scaling.signals`.
    """
    terms = terms_of(slo, targets)
    assert terms is not None, "it scales"
    rules = [_ttft(terms), _out(terms), _gated(slo)]
    if replicas is not None:
        rules += [
            _own(slo, replicas.count, SCALE_REPLICAS_RECORD),
            _own(slo, f"({replicas.waiting})\n/ {number(targets.waiting)}", SCALE_WAITING_RECORD),
            _own(slo, f"({replicas.kv_ratio})\n/ {number(targets.kv_ratio)}", SCALE_KV_RECORD),
        ]
    rules.append(_hold(terms, replicas is not None))
    return Group(f"tailburn-{slo.name}-scaling", INTERVAL_S, tuple(rules))


def _ttft(terms: Terms) -> Rule:
    p99 = _recorded(terms.slo, slo_quantile_record(Clock.TTFT, "p99", WINDOW))
    none = f"0 * {_requests(terms.slo, WINDOW)}"
    return Rule(f"{p99} / {number(terms.threshold_s)}\nor\n{none}", SCALE_TTFT_RECORD)


def _out(terms: Terms) -> Rule:
    ratio = _recorded(terms.slo, SCALE_TTFT_RECORD)
    window = f"{ratio}[{duration(terms.for_s)}]"
    seen = f"count_over_time({window}) >= {number(evaluations(terms.for_s))}"
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


def _hold(terms: Terms, has_engines: bool) -> Rule:
    slo = terms.slo
    ratio = _recorded(slo, SCALE_TTFT_RECORD)
    window = duration(QUIET_S)
    quiet = [
        f"(max_over_time({ratio}[{window}]) < bool {number(QUIET_TTFT)})",
        f"(count_over_time({ratio}[{window}]) >= bool {number(evaluations(QUIET_S))})",
        _no_rise_ahead(slo),
    ]
    if has_engines:
        replicas = _recorded(slo, SCALE_REPLICAS_RECORD)
        waiting = _recorded(slo, SCALE_WAITING_RECORD)
        kv = _recorded(slo, SCALE_KV_RECORD)
        short = number(terms.targets.quiet_waiting_ratio)
        quiet += [
            f"(max_over_time({waiting}[{window}]) < bool {short})",
            f"(max_over_time({kv}[{window}]) * {replicas} < bool ({replicas} - 1))",
        ]
    all_quiet = f"\n  * {_on(slo)} ".join(quiet)
    held = f"(0 * {ratio} + 1)"  # no sample where nothing is known now
    return Rule(f"{held} - {_on(slo)} (\n  {all_quiet}\n)\nor\n{held}", SCALE_HOLD_RECORD)


def _no_rise_ahead(slo: Slo) -> str:
    """Whether the coming hour, by the day before, brings no more than a tenth over the last."""
    sampled, hour = sampled_record("", SAMPLED_S), duration(AHEAD_S)
    back = f"[{hour}] offset {duration(DAY_S - AHEAD_S)}"
    now, ahead = (_requests(slo, sampled, over) for over in (f"[{hour}]", back))
    return f"(({ahead} or 0 * {now}) <= bool {_on(slo)} {number(RISE)} * {now})"


def _requests(slo: Slo, rate: str, over: str = "") -> str:
    """Requests a second of the SLO, now or as the mean over a range; `rate` ends the record."""
    recorded = _recorded(slo, f"{SLO_TOTAL_RATE_RECORD}{rate}")
    mean = f"avg_over_time({recorded}{over})" if over else recorded
    return f"max {by((SLO_LABEL, *slo.by))} ({mean})"


def _own(slo: Slo, expr: str, record: str) -> Rule:
    return Rule(expr, record, labels={SLO_LABEL: slo.name})


def _recorded(slo: Slo, record: str) -> str:
    return selector(record, {SLO_LABEL: slo.name})


def _on(slo: Slo) -> str:
    return f"on ({', '.join((SLO_LABEL, *slo.by))})"
