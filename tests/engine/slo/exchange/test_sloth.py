"""Sloth's SLOs made ours: nothing of them is dropped in silence."""

from dataclasses import replace

import pytest

from tailburn.engine.slo.exchange.importing import Imported, import_slos
from tailburn.engine.slo.model import QuerySource, Rolling, Slo
from tailburn.engine.slo.parse import parse
from tests.engine.slo.exchange.sloth_texts import FILE, KUBERNETES


def slos_of(imported: Imported) -> tuple[Slo, ...]:
    assert not imported.problems, [str(p) for p in imported.problems]
    parsed = parse(imported.texts)
    assert not parsed.problems, [str(p) for p in parsed.problems]
    return parsed.slos


def told(text: str) -> list[str]:
    return [str(p).removeprefix("f:") for p in import_slos([("f", text)]).problems]


def lost(text: str) -> list[str]:
    return [str(p).removeprefix("f:") for p in import_slos([("f", text)]).lost]


def test_each_slo_becomes_a_document_on_its_own_queries() -> None:
    orders, search = slos_of(import_slos([("f", FILE)]))
    assert (orders.name, orders.availability_ratio) == ("shop-orders", 0.999)
    assert orders.labels == {
        "sloth_service": "shop",
        "sloth_slo": "orders",
        "owner": "team-a",
        "tier": "1",
    }
    assert orders.source == QuerySource(
        'sum(rate(orders_total{code=~"5.."}[{{.window}}]))',
        "sum(rate(orders_total[{{.window}}]))",
    )
    assert orders.runbook_url == "https://wiki.example.com/orders"
    assert (search.name, search.availability_ratio) == ("shop-search", 0.95)


def test_a_ratio_alone_counts_no_idle_minute() -> None:
    _, search = slos_of(import_slos([("f", FILE)]))
    assert isinstance(search.source, QuerySource)
    ratio = "(sum(rate(slow_total[{{.window}}]))\n/\nsum(rate(searches_total[{{.window}}])))"
    assert search.source.bad == f"{ratio} >= 0"
    assert search.source.total == f"({ratio} >= 0) * 0 + 1"


def test_the_description_goes_on_as_a_comment() -> None:
    (_, text), _ = import_slos([("f", FILE)]).texts
    assert text.startswith("# Orders go through.\n# All of them.\napiVersion: tailburn/v1\n")


def test_the_kubernetes_form_says_the_same() -> None:
    (kubernetes,) = slos_of(import_slos([("f", KUBERNETES)]))
    file, _ = slos_of(import_slos([("f", FILE)]))
    assert replace(kubernetes, place=file.place, runbook_url=file.runbook_url) == file


def test_the_period_is_the_users_to_say() -> None:
    orders, _ = slos_of(import_slos([("f", FILE)], window="28d"))
    assert orders.window == Rolling(28 * 86_400)


def test_what_is_not_carried_over_is_listed_value_by_value() -> None:
    assert lost(KUBERNETES) == [
        "3: metadata: has no counterpart here; left out",
        "16: spec.slos[0].alerting.name: 'OrdersFail' is not carried over: "
        "alerts have one name for all SLOs",
        "17: spec.slos[0].alerting.pageAlert.labels.severity: 'critical' is not carried over: "
        "route by team, severity and slo",
    ]
    assert [line.partition(":")[0] for line in lost(FILE)] == ["16", "22", "27", "28"]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("objective: 95\n", "objective: 95\n    plugins: {chain: [{id: a}]}\n", "slos[1].plugins:"),
        ("service: shop\n", "service: shop\nslo_plugins: {chain: []}\n", "slo_plugins:"),
        ("{owner: team-a}", "{alertname: a}", "labels.alertname: 'a' is a label that"),
        ("{owner: team-a}", "{team-name: a}", "labels.team-name: 'a' is no label name"),
        ("{runbook: https", "{note: https", "slos[0].alerting.annotations.note: "),
        ("name: search\n", "name: search\n    new_field: 1\n", "slos[1].new_field: '1' has no"),
    ],
)
def test_every_value_that_is_lost_is_named(old: str, new: str, wanted: str) -> None:
    text = FILE.replace(old, new)
    assert text != FILE
    assert any(wanted in line for line in lost(text)), lost(text)


def test_an_slo_made_by_a_plugin_is_left_out_and_named() -> None:
    head, _, _ = FILE.partition("  - name: search")
    text = f"{head}  - {{name: x, objective: 99, sli: {{plugin: {{id: a}}}}}}\n"
    imported = import_slos([("f", text)])
    assert [name for name, _ in imported.texts] == ["shop-orders"]
    assert "slos[1]: is made by a plugin of Sloth's" in str(imported.lost[-1])


FAULTS = {
    "no service": ("service: shop", "service: ''", "2: service: is empty; want a text"),
    "a service that is no name": (
        "service: shop",
        "service: _shop",
        "2: service: '_shop' is no name",
    ),
    "an SLO without a name": ("name: orders", "name: ''", "5: slos[0].name: is empty"),
    "an SLO that is no name": ("name: orders", "name: a{b", "5: slos[0].name: 'a{b' is no name"),
    "an objective over 100": ("99.9", "101", "6: slos[0].objective: '101%' is out of bounds"),
    "an objective of 0": ("99.9", "0", "6: slos[0].objective: '0%' is out of bounds"),
    "a negative objective": ("99.9", "-1", "6: slos[0].objective: '-1%' is no per cent"),
    "an objective without budget": ("99.9", "100", "6: slos[0].objective: '100%' leaves no budget"),
    "no objective": ("    objective: 99.9\n", "", "5: slos[0].objective: is missing"),
    "a label that is no text": ('tier: "1"', "tier: [1]", "10: slos[0].labels.tier: is a list"),
    "a label that is empty": ('tier: "1"', "tier: ''", "10: slos[0].labels.tier: is empty"),
    "no query": (
        "error_query: sum",
        "error_query: ''\n        x: sum",
        "13: slos[0].sli.events.error_query: is empty",
    ),
    "a query without its range": (
        "orders_total[{{.window}}]",
        "orders_total[5m]",
        "14: slos[0].sli.events.total_query: 'sum(rate(orders_total[5m]))' has no {{.window}}",
    ),
    "a query that is no PromQL": (
        '{code=~"5.."}[',
        "{[",
        "13: slos[0].sli.events.error_query: "
        "'sum(rate(orders_total{[{{ .window }}]))' is no PromQL",
    ),
    "two queries that are one": (
        '{code=~"5.."}',
        "",
        "13: slos[0].sli.events.error_query: 'sum(rate(orders_total[{{ .window }}]))' is the same",
    ),
    "two kinds of indicator": (
        "      events:",
        "      raw: {error_ratio_query: x}\n      events:",
        "11: slos[0].sli: has events and raw; want one of events, raw and plugin",
    ),
    "no indicator": (
        "      raw:\n        error_ratio_query: |",
        "      other:\n        query: |",
        "20: slos[1].sli: has none; want one of events, raw and plugin",
    ),
    "a ratio without a query": (
        "error_ratio_query: |",
        "no_query: |",
        "21: slos[1].sli.raw.error_ratio_query: is empty; want a text",
    ),
    "a ratio without its range": (
        "[{{.window}}]))\n          /\n          sum(rate(searches_total[{{.window}}]))",
        "[5m]))",
        "22: slos[1].sli.raw.error_ratio_query: 'sum(rate(slow_total[5m]))\\n' has no {{.window}}",
    ),
    "labels that are a list": ("{owner: team-a}", "[a]", "3: labels: want a mapping of names"),
    "SLOs that are no list": ("slos:\n", "slos: a\nx:\n", "4: slos: 'a' want a list"),
    "an alert without a name": (
        "name: OrdersFail",
        "name: ''",
        "16: slos[0].alerting.name: is missing or empty; name the alert, or disable both",
    ),
    "an unknown version": ("prometheus/v1", "prometheus/v2", "1: version: 'prometheus/v2' is not"),
    "no SLOs": ("slos:", "others:", "1: slos: is missing or empty; want at least one SLO"),
    "a name twice": ("name: search", "name: orders", "18: slos[1].name: 'shop-orders' is the name"),
}


@pytest.mark.parametrize(("old", "new", "wanted"), FAULTS.values(), ids=FAULTS.keys())
def test_what_sloth_would_refuse_is_refused_with_its_line(old: str, new: str, wanted: str) -> None:
    text = FILE.replace(old, new, 1)
    assert text != FILE
    problems = told(text)
    assert [problem[: len(wanted)] for problem in problems] == [wanted]


def test_names_are_unique_over_all_files() -> None:
    imported = import_slos([("a", FILE), ("b", KUBERNETES)])
    (problem,) = imported.problems
    assert str(problem) == (
        "b:8: spec.slos[0].name: 'shop-orders' is the name of a:5 too; each SLO needs its own"
    )


def test_faults_of_syntax_are_told() -> None:
    assert told("a: [") == ["1: YAML: expected the node content, but found '<stream end>'"]
    wanted = "is not known; want prometheus/v1, sloth.slok.dev/v1 or openslo/v1"
    assert told("- 1\n- 2\n") == [f"{line}: document: '{line}' {wanted}" for line in (1, 2)]
