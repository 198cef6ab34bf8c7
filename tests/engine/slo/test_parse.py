"""Files of SLOs read, and everything that can be wrong with them told at once."""

import pytest

from tailburn.engine.slo.model import (
    Calendar,
    Clock,
    Completion,
    EngineSource,
    Exclude,
    QuerySource,
    Regression,
    Rolling,
    ScaleOut,
    Slo,
    Tier,
)
from tailburn.engine.slo.parse import parse
from tests.engine.slo.texts import CHAT, SPEC_LINE, slo_text


def one(text: str) -> Slo:
    parsed = parse([("slos.yaml", text)])
    assert not parsed.problems, [str(problem) for problem in parsed.problems]
    (slo,) = parsed.slos
    return slo


def told(*texts: str) -> list[str]:
    parsed = parse([(f"{i}.yaml", text) for i, text in enumerate(texts)])
    return [str(problem) for problem in parsed.problems]


def test_all_that_a_document_says_is_read() -> None:
    slo = one(CHAT)
    assert (slo.name, slo.team, str(slo.place)) == ("chat", "assistants", "slos.yaml:3")
    assert slo.select == {"pool": "interactive", "request_type": "chat"}
    assert slo.clocks == {
        Clock.TTFT: {
            Tier.TARGET: {"p95": 0.4},
            Tier.ACCEPTABLE: {"p50": 0.3, "p95": 0.5, "p99": 1.0},
            Tier.CRITICAL: {"p95": 3.0},
        },
        Clock.TPOT: {
            Tier.TARGET: {"p95": 0.04},
            Tier.ACCEPTABLE: {"p95": 0.06},
            Tier.CRITICAL: {"p50": 0.15},
        },
    }
    assert (slo.availability_ratio, slo.goodput_ratio) == (0.999, 0.95)
    assert slo.consistency_p99_over_p50 == 3
    assert slo.regression == Regression(1.5, 3)
    assert slo.scale_out == ScaleOut(0.8, 300)


def test_what_is_not_said_has_its_default() -> None:
    slo = one(slo_text("availability: 99%"))
    assert (slo.vantage, slo.window, slo.by, slo.select) == ("gateway", Rolling(2_592_000), (), {})
    assert slo.exclude == Exclude("before_threshold", (), ())
    assert (slo.source, slo.completion, slo.regression, slo.scale_out) == (None,) * 4


def test_a_batch_pool_promises_completion_by_a_time() -> None:
    slo = one(slo_text("completion: {within: 1h30m, objective: 99.5%}\ncalendar: month"))
    assert slo.is_batch
    assert slo.completion == Completion(5400, 0.995)
    assert slo.window == Calendar("month", "UTC")


def test_a_calendar_keeps_its_time_zone() -> None:
    slo = one(slo_text("availability: 99%\ncalendar: quarter\ntime_zone: Europe/Berlin"))
    assert slo.window == Calendar("quarter", "Europe/Berlin")


def test_lone_values_are_lists_of_one() -> None:
    slo = one(
        slo_text("availability: 99%\nby: model\nexclude: {http_status: 404, where: {client: a}}")
    )
    assert slo.by == ("model",)
    assert slo.exclude == Exclude("before_threshold", (404,), ({"client": "a"},))


def test_an_engine_can_be_the_source() -> None:
    slo = one(
        slo_text("vantage: engine\navailability: 99%\nsource: {engine: sglang, match: {job: a}}")
    )
    assert slo.source == EngineSource("sglang", {"job": "a"}, False, "classic")


def test_two_queries_can_be_the_source() -> None:
    queries = "{bad: 'rate(b[{{ .window }}])', total: 'rate(t[{{.window}}])'}"
    spec = f"availability: 99%\nsource: {{queries: {queries}}}"
    assert one(slo_text(spec)).source == QuerySource("rate(b[{{.window}}])", "rate(t[{{.window}}])")


def test_scalars_are_what_is_written_not_what_yaml_makes_of_them() -> None:
    slo = one(slo_text("availability: 99%\nselect: {model: no, route: 012, client: 2026-12-01}"))
    assert slo.select == {"model": "no", "route": "012", "client": "2026-12-01"}


def test_a_file_holds_several_documents() -> None:
    text = "---\n".join(slo_text("availability: 99%", name) for name in "abc") + "---\n"
    assert [slo.name for slo in parse([("f", text)]).slos] == ["a", "b", "c"]


FAULTS = {
    "a ratio where a per cent is meant": (
        "availability: 0.99",
        "spec.availability: '0.99' is a ratio where a per cent is meant; did you mean 99%?",
    ),
    "a ratio with a per cent sign": (
        "goodput: 0.999%",
        "spec.goodput: '0.999%' is a ratio where a per cent is meant; did you mean 99.9%?",
    ),
    "an objective over 100": (
        "availability: 101",
        "spec.availability: '101' is out of bounds; want a per cent from 50% to 99.9999%",
    ),
    "an objective without a budget": (
        "availability: 100%",
        "spec.availability: '100%' leaves no budget: the first bad request would break it; "
        "want less than 100%",
    ),
    "an objective that is no number": (
        "availability: nan",
        "spec.availability: 'nan' is no per cent; want one such as 99.9%",
    ),
    "an unknown field near a known one": (
        "availabilty: 99%",
        "spec.availabilty: is not known; want one of availability, by, calendar, clocks, "
        "completion, consistency, exclude, goodput, regression, scale_out, select, source, "
        "time_zone, vantage, window; did you mean availability?",
    ),
    "an unknown clock": (
        "clocks: {tptf: {}}",
        "spec.clocks.tptf: is not known; want one of e2e, itl, queue, tpot, ttft; "
        "did you mean ttft?",
    ),
    "an unknown percentile": (
        "clocks: {ttft: {acceptable: {p98: 1s}}}",
        "spec.clocks.ttft.acceptable.p98: is not known; want one of p50, p90, p95, p99, p99.9; "
        "did you mean p99?",
    ),
    "a time without a unit": (
        "clocks: {ttft: {acceptable: {p95: 500}}}",
        "spec.clocks.ttft.acceptable.p95: '500' is no time; want a number and its unit such as "
        "400ms; 500 of what?",
    ),
    "a time out of bounds": (
        "clocks: {ttft: {acceptable: {p95: 2d}}}",
        "spec.clocks.ttft.acceptable.p95: '2d' is out of bounds; want a time from 1ms to 1d",
    ),
    "an unknown vantage": (
        "vantage: engin",
        "spec.vantage: 'engin' is not known; want one of client, engine, gateway; "
        "did you mean engine?",
    ),
    "an unknown dimension": (
        "select: {modle: a}",
        "spec.select.modle: 'modle' is not known; want one of client, gpu, lora, model, node, "
        "pool, priority, prompt_class, replica, request_type, route, service, tenant, zone; "
        "did you mean model?",
    ),
    "a calendar inside the window": (
        "window: {calendar: month}",
        "spec.window: is a mapping; want a time such as 30d, or in its place `calendar: month`",
    ),
    "a window and a calendar": (
        "window: 30d\ncalendar: month\navailability: 99%",
        "spec.calendar: 'month' stands beside a window; remove one of the two",
    ),
    "a time zone that is none": (
        "calendar: month\ntime_zone: Europe/Bonn\navailability: 99%",
        "spec.time_zone: 'Europe/Bonn' is no time zone; want one such as Europe/Berlin",
    ),
    "a time zone that is a path": (
        "calendar: month\ntime_zone: ../../etc/passwd\navailability: 99%",
        "spec.time_zone: '../../etc/passwd' is no time zone; want one such as Europe/Berlin",
    ),
    "a time zone without a calendar": (
        "time_zone: UTC\navailability: 99%",
        "spec.time_zone: 'UTC' is for a calendar; add `calendar: month`",
    ),
    "an excluded failure of the server": (
        "exclude: {http_status: [404, 503]}\navailability: 99%",
        "spec.exclude.http_status[1]: '503' is out of bounds; want a whole number from 400 to "
        "499: only a caller's own mistake can be left out",
    ),
    "a missing value": (
        "availability: 99%\ngoodput:",
        "spec.goodput: has no value; give it one or remove the line",
    ),
    "a value of the wrong form": (
        "clocks: [ttft]\navailability: 99%",
        "spec.clocks: want a mapping of names to values",
    ),
    "a missing field": (
        "completion: {within: 1h}",
        "spec.completion.objective: is missing; add it",
    ),
    "percentiles that fall": (
        "clocks: {ttft: {acceptable: {p50: 600ms, p95: 500ms}}}",
        "spec.clocks.ttft.acceptable.p95: '500ms' is below its p50, 600ms; want at least that",
    ),
    "tiers that fall": (
        "clocks: {ttft: {target: {p95: 600ms}, acceptable: {p95: 500ms}}}",
        "spec.clocks.ttft.acceptable.p95: '500ms' is below the target p95, 600ms; "
        "want at least that",
    ),
    "a goodput of nothing": (
        "goodput: 95%\nclocks: {ttft: {acceptable: {p99: 1s}}}",
        "spec.goodput: '95%' joins no clock; give ttft or tpot an acceptable p95, or use "
        "availability",
    ),
    "a scale-out without a limit": (
        "scale_out: {}\nclocks: {ttft: {acceptable: {p95: 1s}}}",
        "spec.scale_out: is a share of the acceptable p99 TTFT; set clocks.ttft.acceptable.p99",
    ),
    "a budget for each of one value": (
        "select: {model: a}\nby: [model]\navailability: 99%",
        "spec.by: model is fixed by spec.select.model; remove it from one of the two",
    ),
    "a dimension twice": (
        "by: [model, model]\navailability: 99%",
        "spec.by: model is given twice; remove one of the two",
    ),
    "two sources": (
        "availability: 99%\nsource: {engine: vllm, queries: "
        "{bad: 'rate(x[{{.window}}])', total: 'rate(y[{{.window}}])'}}",
        "spec.source: names an engine and queries; want one of the two",
    ),
    "a choice that an engine can't make": (
        "vantage: engine\nselect: {pool: a}\navailability: 99%\nsource: {engine: vllm}",
        "spec.select: names dimensions that vllm's histograms don't have; choose "
        "its series by their labels in source.match",
    ),
    "no source": (
        "availability: 99%\nsource: {match: {job: vllm}}",
        "spec.source: names neither an engine nor queries; want one of the two",
    ),
    "a query without its range": (
        "availability: 99%\nsource: {queries: {bad: 'rate(x[5m])', total: 'x[{{.window}}]'}}",
        "spec.source.queries.bad: 'rate(x[5m])' has no {{.window}}; want it where the range "
        "goes: rate(x[{{.window}}])",
    ),
    "a query that is no PromQL": (
        "availability: 99%\nsource: {queries: {bad: 'sum(x{[{{.window}}])', "
        "total: 'x[{{.window}}]'}}",
        "spec.source.queries.bad: 'sum(x{[{{.window}}])' is no PromQL: "
        "unexpected character inside braces: '['",
    ),
    "a query for a range": (
        "availability: 99%\nsource: {queries: {bad: 'x[{{.window}}]', "
        "total: 'rate(x[{{.window}}])'}}",
        "spec.source.queries.bad: 'x[{{.window}}]' is a range of samples; want a rate of it: "
        "rate(x[{{.window}}])",
    ),
    "two queries that are one": (
        "availability: 99%\nsource: {queries: {bad: 'rate(x[{{.window}}])', "
        "total: 'rate(x[{{ .window }}])'}}",
        "spec.source.queries.bad: 'rate(x[{{.window}}])' is the same as total; "
        "want the bad requests alone",
    ),
    "clocks of queries": (
        "availability: 99%\nclocks: {ttft: {acceptable: {p95: 1s}}}\n"
        "source: {queries: {bad: 'rate(x[{{.window}}])', total: 'rate(y[{{.window}}])'}}",
        "spec.clocks: can't be told by source.queries; remove it, or count it in the queries",
    ),
    "goodput of histograms": (
        "goodput: 95%\nclocks: {ttft: {acceptable: {p95: 1s}}}\nsource: {engine: vllm}",
        "spec.goodput: '95%' needs each request's clocks together, which vllm's histograms don't "
        "tell; remove it, or the source",
    ),
    "queries without an objective": (
        "source: {queries: {bad: 'rate(x[{{.window}}])', total: 'rate(y[{{.window}}])'}}",
        "spec.source.queries: have no objective; set spec.availability",
    ),
    "exclusions of histograms": (
        "availability: 99%\nexclude: {http_status: 404}\nsource: {engine: vllm}",
        "spec.exclude: can't be taken out of vllm's histograms; remove it, or the source",
    ),
    "a window longer than a year": (
        "window: 400d\navailability: 99%",
        "spec.window: '400d' is out of bounds; want a time from 1d to 366d",
    ),
    "a ratio that is no number": (
        "consistency: {p99_over_p50: 3x}",
        "spec.consistency.p99_over_p50: '3x' is no number; want one such as 3",
    ),
    "a ratio that any answer breaks": (
        "consistency: {p99_over_p50: 1}",
        "spec.consistency.p99_over_p50: '1' is out of bounds; want a number from 1.01 to 1000",
    ),
    "a per cent where a ratio is meant": (
        "scale_out: {at: 80%}\nclocks: {ttft: {acceptable: {p99: 1s}}}",
        "spec.scale_out.at: '80%' is no number; want one such as 0.8",
    ),
    "a baseline of too many days": (
        "regression: {days: 7}",
        "spec.regression.days: '7' is out of bounds; want a whole number from 1 to 3: the median "
        "of so many days is the baseline",
    ),
    "a flag that is none": (
        "availability: 99%\nsource: {engine: vllm, relabelled: yes}",
        "spec.source.relabelled: 'yes' is not known; want one of false, true",
    ),
    "a text of many lines": (
        'availability: 99%\nselect: {model: "a\\nb"}',
        "spec.select.model: 'a\\nb' holds a line break or control character; want one line of text",
    ),
    "a text that is too long": (
        f"availability: 99%\nselect: {{model: {'a' * 1025}}}",
        f"spec.select.model: '{'a' * 59}…' is 1025 characters long; want at most 1024",
    ),
    "a promise of nothing": (
        "clocks: {ttft: {target: {p95: 1s}}}",
        "spec: promises nothing; set availability, goodput, or a clock's acceptable p95",
    ),
    "an alias": (
        "availability: &a 99%\ngoodput: *a\nclocks: {ttft: {acceptable: {p95: 1s}}}",
        "spec.availability: '&a' is an anchor or its alias; write the value out in both places",
    ),
    "a tag": (
        "availability: !!python/object:os.system 99%",
        "spec.availability: 'tag:yaml.org,2002:python/object:os.system' is a tag; remove it: "
        "fields know their type",
    ),
    "a key twice": (
        "availability: 99%\navailability: 98%",
        "spec.availability: is given twice; remove one of the two",
    ),
    "a key that is no text": (
        "[a]: 1\navailability: 99%",
        "spec.key on line 5: is a list or mapping; want a text as key",
    ),
}


@pytest.mark.parametrize(("spec", "wanted"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_told_with_field_value_limit_and_remedy(spec: str, wanted: str) -> None:
    problems = parse([("f", slo_text(spec))]).problems
    assert wanted in [str(p).split(": ", 1)[1] for p in problems]
    assert all(p.file == "f" and p.line >= SPEC_LINE - 1 for p in problems)


METADATA_FAULTS = {
    "name: ''": "is empty; want a text",
    "name: -a": "is no name; want at most 128 letters, digits, '-', '_' and '.', the first and "
    "last of them a letter or digit",
    f"name: {'a' * 129}": "is no name; want at most 128 letters",
    "name: [a]": "is a list or mapping; want a text",
    "name: a, labels: {team-name: x}": "is no label name in Prometheus",
    "name: a, labels: {__team: x}": "is no label name in Prometheus",
    "name: a, labels: {severity: x}": "alerts and series carry already; rename it, say my_severity",
    'name: a, labels: {team: "x\\ny"}': "holds a line break or control character",
    "name: a, links: {runbook: javascript:alert(1)}": "is no link; want one such as https://",
    "labels: {team: x}": "metadata.name: is missing",
}


@pytest.mark.parametrize(("metadata", "wanted"), METADATA_FAULTS.items())
def test_names_that_prometheus_would_refuse_are_refused(metadata: str, wanted: str) -> None:
    text = slo_text("availability: 99%").replace("name: chat", metadata)
    (problem,) = told(text)
    assert wanted in problem
    assert problem.startswith("0.yaml:3: metadata.")


def test_a_label_is_no_dimension_of_by() -> None:
    text = slo_text("availability: 99%\nby: [model]").replace(
        "name: chat", "name: chat, labels: {model: a}"
    )
    assert told(text) == [
        "0.yaml:3: metadata.labels.model: 'model' is a dimension in spec.by too; "
        "rename the label, say my_model"
    ]


def test_a_source_of_another_vantage_can_be_accepted() -> None:
    slo = one(slo_text("availability: 99%\nsource: {engine: vllm, relabelled: true}"))
    assert isinstance(slo.source, EngineSource)
    assert slo.source.relabelled


def test_every_fault_of_every_file_is_told_at_once_in_the_order_of_the_files() -> None:
    first = slo_text("availability: 0.9\ngoodput: 101\nclocks: {ttft: {acceptable: {p95: 5}}}")
    second = slo_text("window: 5\nclocks: {tpot: {target: {p95: 2s}, critical: {p95: 1s}}}", "b")
    lines = [problem.split(": ")[0] for problem in told(first, second)]
    assert lines == ["0.yaml:5", "0.yaml:6", "0.yaml:7", "1.yaml:5", "1.yaml:6"]


def test_a_fault_hides_no_contradiction_elsewhere_and_invents_none() -> None:
    spec = "goodput: 95%\nclocks: {ttft: {acceptable: {p95: 5}}}\nscale_out: {}\nby: [x]"
    problems = [p.split(": ")[1] for p in told(slo_text(spec))]
    # goodput and scale-out may be right once the clock is: only its own fault is known.
    assert problems == ["spec.clocks.ttft.acceptable.p95", "spec.by[0]"]


def test_a_fault_in_a_list_hides_no_contradiction() -> None:
    spec = (
        "by: [modle, model, model]\n"
        "exclude: {http_status: [500, 404, x]}\n"
        "completion: {within: 5, objective: 99%}\n"
        "clocks: {ttft: {acceptable: {p50: 2s, p95: 1s}}}"
    )
    assert [problem.split(": ")[1] for problem in told(slo_text(spec))] == [
        "spec.by[0]",
        "spec.by",
        "spec.exclude.http_status[0]",
        "spec.exclude.http_status[2]",
        "spec.completion.within",
        "spec.clocks.ttft.acceptable.p95",
    ]


@pytest.mark.parametrize("window", ["1d", "366d"])
def test_bounds_are_within(window: str) -> None:
    slo = one(slo_text(f"window: {window}\nclocks: {{e2e: {{acceptable: {{p90: 1ms, p99: 1d}}}}}}"))
    assert str(slo.window) == window
    assert slo.clocks[Clock.E2E][Tier.ACCEPTABLE] == {"p90": 0.001, "p99": 86_400}


def test_a_name_is_given_once_over_all_files_whatever_its_case() -> None:
    text = slo_text("availability: 99%", "chat")
    other = slo_text("availability: 99%", "Chat")
    assert told(text, other) == [
        "1.yaml:3: metadata.name: 'Chat' is the name of 0.yaml:3 too; each SLO needs its own"
    ]


def test_documents_of_other_tools_lead_to_import() -> None:
    sloth = "version: prometheus/v1\nservice: a\nslos: []\n"
    openslo = "apiVersion: openslo/v1\nkind: SLO\n"
    kubernetes = "apiVersion: sloth.slok.dev/v1\nkind: PrometheusServiceLevel\n"
    problems = told(sloth, openslo, kubernetes)
    assert [p.split(": ", 1)[1] for p in problems] == [
        f"{field}: '{version}' is another tool's; see `tailburn slo import`"
        for field, version in (
            ("version", "prometheus/v1"),
            ("apiVersion", "openslo/v1"),
            ("apiVersion", "sloth.slok.dev/v1"),
        )
    ]


SYNTAX = {
    "": "f:1: file: is empty; `tailburn slo init` writes a first one",
    "# nothing\n---\n": "f:1: file: is empty; `tailburn slo init` writes a first one",
    "a:\n\tb: 1\n": "f:2: YAML: found character '\\t' that cannot start any token; "
    "indent with spaces",
    "a: [1\nb: 2\n": "f:2: YAML: expected ',' or ']', but got ':'",
    "a: b: c\n": "f:1: YAML: mapping values are not allowed here",
    "a: 1\nb: \x00\n": "f:2: YAML: holds the character '\\x00', which YAML forbids",
    'a: "\\UFFFFFFFF"\n': "f:1: YAML: Python int too large to convert to C int",
    'a: 1\nb: "\\uD800"\n': "f:2: b: holds half of a surrogate pair, which is no character",
    "[" * 10_000: "f:1: YAML: is nested deeper than 24 levels",
    "a: " + "{b: " * 30 + "}" * 30: "f:1: YAML: is nested deeper than 24 levels",
    "- a\n": "f:1: document: want a mapping: kind: ServingSLO, ...",
    "hello\n": "f:1: document: 'hello' want a mapping: kind: ServingSLO, ...",
    "kind: [x]\n": "f:1: kind: is not known; want one of ServingSLO",
}


@pytest.mark.parametrize("text", SYNTAX, ids=lambda text: text[:20])
def test_what_is_no_document_is_told_with_its_line(text: str) -> None:
    problems = parse([("f", text)]).problems
    assert SYNTAX[text] in map(str, problems)


def test_a_bomb_of_aliases_costs_a_line_each() -> None:
    levels = ["a0: &a0 [x, x]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)
    ]
    problems = parse([("f", "\n".join(levels))]).problems
    assert len(problems) < 400
    assert {p.line for p in problems} >= set(range(1, 21))


def test_faults_of_syntax_leave_earlier_documents_judged() -> None:
    text = slo_text("availability: 0.5") + "---\n" + slo_text("availability: [") + "\n"
    assert [p.split(": ")[1] for p in told(text)] == ["spec.availability", "YAML"]
