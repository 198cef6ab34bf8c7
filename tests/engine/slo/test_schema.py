"""The JSON Schema, judged by another's validator, agrees with what the program reads."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tailburn.app.slo_presets import Preset, preset_text
from tailburn.engine.slo.exchange.writing import yaml_text
from tailburn.engine.slo.parse import parse
from tailburn.engine.slo.schema import MODELINE, SCHEMA_FILE, json_schema
from tests.engine.slo.test_parse import FAULTS
from tests.engine.slo.texts import CHAT, slo_text

VALIDATOR = Draft202012Validator(json_schema())
# What only the program can know: sums over several fields, PromQL, names of zones, YAML's form.
BEYOND = {
    "a window and a calendar",
    "a time zone that is none",
    "a time zone that is a path",
    "a time zone without a calendar",
    "percentiles that fall",
    "tiers that fall",
    "a goodput of nothing",
    "a scale-out without a limit",
    "a budget for each of one value",
    "a dimension twice",
    "two sources",
    "a choice that an engine can't make",
    "no source",
    "a query that is no PromQL",
    "a query for a range",
    "two queries that are one",
    "clocks of queries",
    "goodput of histograms",
    "a promise of nothing",
    "queries without an objective",
    "exclusions of histograms",
    "a window longer than a year",
    "a flag that is none",
    "a text of many lines",
    "a text that is too long",
    "an alias",
    "a tag",
    "a key twice",
    "a key that is no text",
    "a time out of bounds",
    "an objective without a budget",
    "an objective over 100",
    "a ratio with a per cent sign",
}


def as_an_editor_sees(text: str) -> Any:
    """The values that YAML makes of a document."""
    return YAML(typ="safe", pure=True).load(text)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())
    assert f"$schema={SCHEMA_FILE}" in MODELINE


@pytest.mark.parametrize("preset", Preset)
def test_presets_are_right_for_the_schema_and_the_program(preset: Preset) -> None:
    text = preset_text(preset, "mine")
    assert not parse([("f", text)]).problems
    VALIDATOR.validate(as_an_editor_sees(text))


def test_all_that_can_be_said_is_right_for_the_schema() -> None:
    VALIDATOR.validate(as_an_editor_sees(CHAT))


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - BEYOND))
def test_what_the_program_refuses_the_schema_refuses(fault: str) -> None:
    spec, _ = FAULTS[fault]
    assert not VALIDATOR.is_valid(as_an_editor_sees(slo_text(spec)))


def test_every_field_that_needs_words_has_them() -> None:
    schema = json_schema()
    for name, field in schema["$defs"]["Spec"]["properties"].items():
        described = field.get("description")
        if "$ref" in field:
            described = schema["$defs"][field["$ref"].rpartition("/")[2]].get("description")
        assert described, f"spec.{name} has no description"


times = st.sampled_from(["1ms", "250ms", "1.5s", "2m", "1h30m", "5", "5 s", "s", "-1s", 5])
shares = st.sampled_from(["99%", "99.9", 99.5, 95, "0.99x", "abc", "-5%"])
thresholds = st.dictionaries(st.sampled_from(["p50", "p95", "p99.9", "p98"]), times, max_size=3)
tiers = st.dictionaries(
    st.sampled_from(["target", "acceptable", "critical", "good"]), thresholds, max_size=2
)
specs = st.fixed_dictionaries(
    {"availability": shares},
    optional={
        "by": st.one_of(
            st.sampled_from(["model", "modle"]), st.lists(st.sampled_from(["model", "x"]))
        ),
        "vantage": st.sampled_from(["client", "gateway", "engine", "proxy"]),
        "clocks": st.dictionaries(st.sampled_from(["ttft", "itl", "ttfx"]), tiers, max_size=2),
        "window": st.sampled_from(["30d", "7d", "30", 30]),
        "exclude": st.fixed_dictionaries(
            {},
            optional={
                "http_status": st.one_of(st.sampled_from([404, 500, "404"]), st.just([400, 429])),
                "cancelled_by_client": st.sampled_from(["always", "sometimes"]),
            },
        ),
    },
)


@given(specs)
def test_what_the_schema_refuses_the_program_refuses(spec: dict[str, Any]) -> None:
    document = {
        "apiVersion": "tailburn/v1",
        "kind": "ServingSLO",
        "metadata": {"name": "a"},
        "spec": spec,
    }
    text = yaml_text(document)
    if not parse([("f", text)]).problems:
        # A number in quotes is one to the program, and a text to an editor.
        VALIDATOR.validate(as_an_editor_sees(text.replace("'", "")))
