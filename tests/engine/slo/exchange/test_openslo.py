"""OpenSLO's SLOs made ours, and ours made OpenSLO's."""

import pytest
from ruamel.yaml import YAML

from tailburn.engine.slo.exchange.importing import import_slos
from tailburn.engine.slo.exchange.openslo_writing import export_openslo
from tailburn.engine.slo.model import Calendar, Objective, QuerySource, Rolling, Slo, objectives
from tailburn.engine.slo.parse import parse
from tests.engine.slo.exchange.test_sloth import slos_of
from tests.engine.slo.texts import CHAT, slo_text

TEXT = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: orders
  displayName: Orders
  labels: {env: [prod], team: [shop, web]}
  annotations: {runbook_url: https://wiki.example.com/orders}
spec:
  description: Orders go through.
  service: shop
  indicator:
    metadata: {name: orders-ratio}
    spec:
      ratioMetric:
        counter: true
        good:
          metricSource: {type: Prometheus, spec: {query: 'sum(orders_total{code!~"5.."})'}}
        total:
          metricSource: {type: Prometheus, spec: {query: sum by (pool) (orders_total)}}
  timeWindow:
    - {duration: 4w, isRolling: true}
  budgetingMethod: Occurrences
  objectives:
    - {displayName: Good, target: 0.995}
"""

INDICATOR = """\
apiVersion: openslo/v1
kind: SLI
metadata: {name: orders-ratio}
spec:
  ratioMetric:
    counter: true
    bad: {metricSource: {spec: {query: 'sum(rate(orders_total{code=~"5.."}[5m]))'}}}
    total: {metricSource: {spec: {query: 'sum(rate(orders_total[{{.window}}]))'}}}
"""

ALPHA = """\
apiVersion: openslo/v1alpha
kind: SLO
metadata: {name: orders, displayName: Orders}
spec:
  service: shop
  budgetingMethod: Occurrences
  objectives:
    - target: 0.999
      ratioMetrics:
        good: {source: prometheus, queryType: promql, query: 'rate(good[{{.window}}])'}
        total: {source: prometheus, queryType: promql, query: 'rate(all[{{.window}}])'}
  timeWindows:
    - {count: 30, unit: Day}
"""

START = TEXT.index("  indicator:")
REFERRING = TEXT[:START] + "  indicatorRef: orders-ratio\n" + TEXT[TEXT.index("  timeWindow:") :]


def lost(*texts: str) -> list[str]:
    imported = import_slos([(str(i), text) for i, text in enumerate(texts)])
    assert not imported.problems, [str(p) for p in imported.problems]
    return [str(p) for p in imported.lost]


def told(*texts: str) -> list[str]:
    imported = import_slos([(str(i), text) for i, text in enumerate(texts)])
    return [str(p) for p in imported.problems]


def test_an_objective_becomes_a_budget_on_rates_of_its_counters() -> None:
    (slo,) = slos_of(import_slos([("f", TEXT)]))
    assert (slo.name, slo.availability_ratio, slo.window) == ("orders", 0.995, Rolling(28 * 86_400))
    assert slo.labels == {"service": "shop", "env": "prod", "team": "shop, web"}
    assert slo.runbook_url == "https://wiki.example.com/orders"
    total = "sum by (pool) (rate(orders_total[{{.window}}]))"
    good = 'sum(rate(orders_total{code!~"5.."}[{{.window}}]))'
    # Where nothing good has a series, all are bad: not none.
    assert slo.source == QuerySource(f"({total}) - (({good}) or ({total}) * 0)", total)


def test_a_counter_that_became_a_rate_is_listed() -> None:
    assert lost(TEXT) == [
        "0:17: spec.indicator.spec.ratioMetric.good.metricSource.spec.query: "
        "'sum(orders_total{code!~\"5..\"})' is a counter, of which the rate is taken",
        "0:19: spec.indicator.spec.ratioMetric.total.metricSource.spec.query: "
        "'sum by (pool) (orders_total)' is a counter, of which the rate is taken",
    ]


def test_an_indicator_may_stand_in_another_file() -> None:
    imported = import_slos([("slo", REFERRING), ("sli", INDICATOR)])
    (slo,) = slos_of(imported)
    assert slo.source == QuerySource(
        'sum(rate(orders_total{code=~"5.."}[{{.window}}]))', "sum(rate(orders_total[{{.window}}]))"
    )
    assert [str(p) for p in imported.lost] == [
        "sli:7: spec.ratioMetric.bad.metricSource.spec.query: "
        "'sum(rate(orders_total{code=~\"5..\"}[5m]))' has a range of its own, which becomes "
        "that of each window"
    ]


def test_an_indicator_that_is_nowhere_is_told() -> None:
    assert told(REFERRING) == [
        "0:11: spec.indicatorRef: 'orders-ratio' names no SLI of these files; add its file"
    ]


def test_the_older_version_is_read_too() -> None:
    (slo,) = slos_of(import_slos([("f", ALPHA)]))
    assert (slo.availability_ratio, slo.window) == (0.999, Rolling(30 * 86_400))
    assert slo.source == QuerySource(
        "(rate(all[{{.window}}])) - ((rate(good[{{.window}}])) or (rate(all[{{.window}}])) * 0)",
        "rate(all[{{.window}}])",
    )
    assert lost(ALPHA) == []


def test_a_list_of_objects_is_so_many_documents() -> None:
    items = "".join(
        "- " + text.replace("\n", "\n  ").rstrip() + "\n" for text in (REFERRING, INDICATOR)
    )
    (slo,) = slos_of(import_slos([("f", items)]))
    assert slo.name == "orders"
    assert told(items.replace("0.995", "995"))[0].startswith("0:16: spec.objectives[0].target: ")


def test_each_of_several_objectives_is_an_slo() -> None:
    text = TEXT + "    - {displayName: Best, targetPercent: 99.9}\n"
    slos = slos_of(import_slos([("f", text)]))
    assert [(s.name, s.availability_ratio) for s in slos] == [
        ("orders-1", 0.995),
        ("orders-2", 0.999),
    ]


def test_a_calendar_window_stays_one() -> None:
    calendar = "{startTime: 2022-01-01 12:00:00, timeZone: America/New_York}"
    text = TEXT.replace(
        "{duration: 4w, isRolling: true}",
        f"{{duration: 1M, isRolling: false, calendar: {calendar}}}",
    )
    (slo,) = slos_of(import_slos([("f", text)]))
    assert slo.window == Calendar("month", "America/New_York")
    assert (
        "startTime: '2022-01-01 12:00:00' is not carried over: periods begin at" in lost(text)[-1]
    )


@pytest.mark.parametrize(
    ("duration", "days"), [("1M", 30), ("1Q", 90), ("1Y", 365)], ids=["month", "quarter", "year"]
)
def test_a_rolling_month_has_so_many_days_and_says_so(duration: str, days: int) -> None:
    text = TEXT.replace("4w", duration)
    (slo,) = slos_of(import_slos([("f", text)]))
    assert slo.window == Rolling(days * 86_400)
    assert f"has no fixed length when rolling; {days}d is taken for it" in lost(text)[-1]


def ratio(raw: str, kind: str) -> str:
    """An SLO on one query for a ratio."""
    head, tail = TEXT[: TEXT.index("        counter:")], TEXT[TEXT.index("  timeWindow:") :]
    source = f"{{type: Prometheus, spec: {{query: '{raw}'}}}}"
    return f"{head}        rawType: {kind}\n        raw: {{metricSource: {source}}}\n{tail}"


@pytest.mark.parametrize(
    ("kind", "bad"),
    [("failure", "(x / y[{{.window}}]) >= 0"), ("success", "(1 - (x / y[{{.window}}])) >= 0")],
)
def test_a_ratio_is_of_the_good_or_the_bad(kind: str, bad: str) -> None:
    imported = import_slos([("f", ratio("rate(x[{{.window}}]) / rate(y[{{.window}}])", kind))])
    (slo,) = slos_of(imported)
    assert isinstance(slo.source, QuerySource)
    assert slo.source.bad == bad.replace(
        "x / y[{{.window}}]", "rate(x[{{.window}}]) / rate(y[{{.window}}])"
    )
    assert "knows no traffic" in str(imported.lost[-1])


def test_a_query_that_is_no_promql_is_left_out_and_named() -> None:
    for query in ("sum)orders_total", "1 + orders_total"):
        told = lost(TEXT.replace("sum by (pool) (orders_total)", f"'{query}'"))
        assert any("has no range; want rate(x[{{.window}}]) of a counter" in line for line in told)


def test_an_slo_without_an_indicator_is_told() -> None:
    text = TEXT[:START] + TEXT[TEXT.index("  timeWindow:") :]
    assert told(text) == [
        "0:15: spec.objectives[0]: has no indicator; want spec.indicator or spec.indicatorRef"
    ]
    assert "has no ratioMetric; want good or bad" in told(TEXT.replace("ratioMetric:", "other:"))[0]


def test_an_objective_may_have_an_indicator_of_its_own() -> None:
    text = REFERRING.replace("  indicatorRef: orders-ratio\n", "").replace(
        "target: 0.995", "target: 0.995, indicatorRef: orders-ratio"
    )
    (slo,) = slos_of(import_slos([("slo", text), ("sli", INDICATOR)]))
    assert isinstance(slo.source, QuerySource)


def test_a_window_that_is_not_said_is_thirty_days() -> None:
    text = TEXT.replace("  timeWindow:\n    - {duration: 4w, isRolling: true}\n", "")
    (slo,) = slos_of(import_slos([("f", text)]))
    assert slo.window == Rolling(30 * 86_400)


LEFT_OUT = {
    "a gauge against a value": (
        TEXT.replace("ratioMetric:", "thresholdMetric:"),
        ["spec.indicator.spec.thresholdMetric: compares a gauge", "spec: is left out"],
    ),
    "queries of another tool": (
        TEXT.replace("type: Prometheus", "type: Datadog"),
        [
            "ratioMetric.good: is Datadog's, not Prometheus'",
            "spec: is left out: its indicator is no PromQL of counters",
        ],
    ),
    "a gauge without a range": (
        TEXT.replace("counter: true", "counter: false"),
        ["spec: is left out: its indicator is no PromQL of counters"],
    ),
}


@pytest.mark.parametrize(("text", "wanted"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_can_not_be_counted_is_left_out_and_named(text: str, wanted: list[str]) -> None:
    imported = import_slos([("f", text)])
    assert imported.texts == ()
    assert not imported.problems
    for words in wanted:
        assert any(words in str(p) for p in imported.lost), [str(p) for p in imported.lost]


@pytest.mark.parametrize(
    "kind", ["AlertPolicy", "AlertCondition", "AlertNotificationTarget", "DataSource", "Service"]
)
def test_objects_of_other_kinds_are_named(kind: str) -> None:
    text = f"apiVersion: openslo/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{a: b}}\n"
    (line,) = lost(text)
    assert line.startswith(f"0:2: kind: '{kind}' is not carried over: ")


def test_slices_of_time_are_named() -> None:
    text = TEXT.replace("Occurrences", "Timeslices").replace(
        "target: 0.995", "target: 0.995, timeSliceTarget: 0.9, timeSliceWindow: 1m"
    )
    assert sum("requests are counted, not slices of time" in line for line in lost(text)) == 3


FAULTS = {
    "a kind that there is not": ("kind: SLO", "kind: SLX", "2: kind: 'SLX' is no kind"),
    "no objectives": ("  objectives:\n", "  other:\n", "8: spec.objectives: is missing or empty"),
    "a target that is a per cent": ("0.995", "99.5", "24: spec.objectives[0].target: '99.5' is no"),
    "a target without budget": ("0.995", "1", "24: spec.objectives[0].target: '1' is no share"),
    "a window that is none": ("4w", "4x", "21: spec.timeWindow[0].duration: '4x' is no time"),
    "a calendar of two months": (
        "duration: 4w, isRolling: true",
        "duration: 2M, isRolling: false",
        "21: spec.timeWindow[0].duration: '2M' is no period of a calendar here",
    ),
    "half an indicator": (
        "        good:",
        "        other:",
        "14: spec.indicator.spec.ratioMetric: is not whole",
    ),
    "a name that is none": ("name: orders\n", "name: -a\n", "4: metadata.name: '-a' is no name"),
}


@pytest.mark.parametrize(("old", "new", "wanted"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_told_of_the_source(old: str, new: str, wanted: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    problems = [p.removeprefix("0:") for p in told(text)]
    assert [p[: len(wanted)] for p in problems] == [wanted], problems


def queries(slo: Slo, objective: Objective) -> tuple[str, str]:
    labels = f'slo="{slo.name}",objective="{objective.name}"'
    return f"rate(bad{{{labels}}}[{{{{.window}}}}])", f"rate(all{{{labels}}}[{{{{.window}}}}])"


def test_what_is_exported_and_imported_has_the_same_budgets() -> None:
    (chat,) = parse([("f", CHAT)]).slos
    exported = export_openslo([chat], queries)
    again = slos_of(import_slos([("f", exported.text)]))
    budgets = objectives(chat)
    assert [slo.name for slo in again] == [
        f"chat-{budget.name.replace('_', '-')}" for budget in budgets
    ]
    for slo, budget in zip(again, budgets, strict=True):
        (same,) = objectives(slo)
        assert same.budget_ratio == budget.budget_ratio
        assert slo.window == chat.window
        assert slo.source == QuerySource(*queries(chat, budget))
        assert slo.labels == {"service": "chat", "team": "assistants"}


def test_calendars_survive_the_way_out_and_back() -> None:
    for period in ("day", "week", "month", "quarter"):
        text = slo_text(f"availability: 99%\ncalendar: {period}\ntime_zone: Asia/Kolkata")
        (slo,) = parse([("f", text)]).slos
        (again,) = slos_of(import_slos([("f", export_openslo([slo], queries).text)]))
        assert again.window == slo.window


def test_what_no_series_counts_is_listed() -> None:
    (chat,) = parse([("f", CHAT)]).slos
    exported = export_openslo([chat], lambda slo, objective: None)
    assert exported.text == ""
    assert [p.field for p in exported.lost][-1] == "tpot_p95"


def test_what_openslo_has_no_words_for_is_listed() -> None:
    (chat,) = parse([("f", CHAT)]).slos
    fields = [p.field for p in export_openslo([chat], queries).lost]
    assert fields == [
        "spec.clocks.ttft.target.p95",
        "spec.clocks.ttft.acceptable.p50",
        "spec.clocks.ttft.critical.p95",
        "spec.clocks.tpot.target.p95",
        "spec.clocks.tpot.critical.p50",
        "spec.consistency",
        "spec.regression",
        "spec.scale_out",
        "spec.select",
    ]


def test_exported_names_are_dns_labels_of_their_own() -> None:
    texts = [(n, slo_text("availability: 99%", n)) for n in ("a.b", "A_b", "x" * 90, "x" * 91)]
    parsed = parse(texts)
    names = [
        document["metadata"]["name"]
        for document in YAML(typ="safe").load_all(export_openslo(parsed.slos, queries).text)
    ]
    assert len(set(names)) == 4
    assert all(len(name) <= 63 and name.replace("-", "a").isalnum() for name in names)
    assert all(name == name.lower() for name in names)
