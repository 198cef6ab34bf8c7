"""Rules judged by promtool: series in, what must be asked and answered, when."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailburn.engine.slo.model import Clock, Place, Slo, Tier
from tailburn.rules.alerting import Kind
from tailburn.rules.formats import FORMATS
from tailburn.rules.model import RuleSet
from tailburn.rules.promql import selector

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400


@dataclass(frozen=True)
class Asked:
    """The samples that an expression must give at a second: value by labels as text."""

    at_s: float
    expr: str
    samples: Mapping[str, float]


def fires(at_s: float, kind: Kind, **labels: str) -> Asked:
    """One alert of a kind fires then, among those with these labels."""
    return firing(at_s, 1, kind, **labels)


def quiet(at_s: float, kind: Kind, **labels: str) -> Asked:
    """None of them fires then."""
    return firing(at_s, 0, kind, **labels)


def firing(at_s: float, count: int, kind: Kind, **labels: str) -> Asked:
    """So many of them fire then."""
    alerts = selector("ALERTS", {"alertname": str(kind), "alertstate": "firing"} | labels)
    return Asked(at_s, f"count({alerts})", {"{}": count} if count else {})


def judge(
    promtool: str,
    folder: Path,
    rules: RuleSet,
    series: Mapping[str, str],
    asked: Sequence[Asked],
    every_s: int = MINUTE_S,
) -> None:
    """Fail where promtool sees anything else. Series are in its notation, a value each minute.

    All rules are evaluated each `every_s`: five minutes are enough where days go by. Groups in
    their order: promtool takes those that nobody put in order as its map happens to give them.
    """
    groups = [group for group in rules.groups if not group.name.endswith("-views")]
    (folder / "rules.yaml").write_text(FORMATS["prometheus"]("", groups))
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{every_s}s",
        "group_eval_order": [group.name for group in groups],
        "tests": [
            {
                "interval": f"{MINUTE_S}s",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "promql_expr_test": [
                    {
                        "expr": f"round({a.expr}, 1e-6)",
                        "eval_time": f"{int(a.at_s)}s",
                        "exp_samples": [
                            {"labels": labels, "value": value}
                            for labels, value in a.samples.items()
                        ],
                    }
                    for a in asked
                ],
            }
        ],
    }
    (folder / "test.yaml").write_text(json.dumps(test))
    ran = subprocess.run(
        [promtool, "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def slo(**fields: object) -> Slo:
    """An SLO with no promise but those given."""
    return Slo("chat", Place("chat.yaml", 1), **fields)  # type: ignore[arg-type]


def ttft(**tiers: Mapping[str, float]) -> Mapping[Clock, Mapping[Tier, Mapping[str, float]]]:
    """Thresholds of TTFT by tier: `acceptable={"p95": 0.5}`."""
    return {Clock.TTFT: {Tier(name): thresholds for name, thresholds in tiers.items()}}


def histogram(
    metric: str, labels: Mapping[str, str], shares: Mapping[float, float], stretches: str
) -> dict[str, str]:
    """Bucket series of traffic of which these shares are within each bound.

    `stretches` is like `60x30 600x10`: requests a minute, and for how many minutes.
    """
    found = {}
    for bound, share in {**shares, float("inf"): 1.0}.items():
        le = "+Inf" if bound == float("inf") else f"{bound:g}"
        name = selector(f"{metric}_bucket", dict(labels) | {"le": le})
        found[name] = counter(stretches, share)
    return found


def counter(stretches: str, share: float = 1.0) -> str:
    """A counter that rises by so much a minute for so many minutes, `60x30 0x10`; `_x5`: gone."""
    values, at = [], 0.0
    for stretch in stretches.split():
        per_minute, _, minutes = stretch.partition("x")
        if per_minute == "_":
            values.append(f"_x{minutes}")
            continue
        step = float(per_minute) * share
        values.append(f"{at + step:g}+{step:g}x{int(minutes) - 1}")
        at += step * int(minutes)
    return " ".join(values)
