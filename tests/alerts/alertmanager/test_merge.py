"""A user's configuration with ours in it: theirs to the byte, ours once, errors with their line."""

from io import StringIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.alerts.alertmanager.marks import without_ours
from tailburn.alerts.alertmanager.merge import Additions, merge
from tailburn.alerts.alertmanager.text import Item

OURS = Additions(
    [Item({"matchers": ['slo="chat"'], "receiver": "tailburn-page"})],
    [Item({"source_matchers": ['a="b"'], "equal": ["slo"]}, "the reason")],
    [Item({"name": "tailburn-page", "slack_configs": [{"text": '{{ template "x" . }}'}]})],
    [Item("tailburn.tmpl")],
)

BLOCK = """\
# what we know of paging
global: {smtp_smarthost: 'mail:25'}
route:
  # the root
  receiver: desk
  routes:
    - match: {team: db}
      receiver: desk   # for now
receivers:
- name: desk
  slack_configs:
  - api_url: http://127.0.0.1:9/
    text: |+
      kept

"""
SHAPES = {
    "block style": BLOCK,
    "no routes yet": "route:\n    receiver: desk\nreceivers:\n  - name: desk\n",
    "keys without a value": "route:\n  receiver: desk\n  routes: # none\ninhibit_rules:\n"
    "receivers: [{name: desk}]\n",
    "a last key without a value": "receivers: [{name: desk}]\nroute:\n  receiver: desk\n"
    "inhibit_rules:\n",
    "flow style": "route: {receiver: desk, routes: [ {receiver: desk} ]}\n"
    "receivers: [{name: desk}]\ntemplates: []\n",
    "JSON": '{"route": {"receiver": "desk"}, "receivers": [{"name": "desk"}]}\n',
    "JSON on lines": '{\n  "route": {\n    "receiver": "desk",\n    "routes": []\n  },\n'
    '  "receivers": [\n    {"name": "desk"}\n  ]\n}\n',
    "an end of the document": "---\nroute:\n  receiver: desk\nreceivers:\n- name: desk\n...\n",
    "indented from the start": "  route:\n    receiver: desk\n  receivers:\n    - name: desk\n",
    "an anchor elsewhere": "route:\n  receiver: desk\n  group_by: &by [slo]\n  routes:\n"
    "  - receiver: desk\n    group_by: *by\nreceivers:\n- name: desk\n",
}


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def expected(text: str) -> Any:
    """What the merged text must say, made with values instead of text."""
    config = parsed(text)
    config["route"]["routes"] = [
        *(i.value for i in OURS.routes),
        *(config["route"].get("routes") or []),
    ]
    for key in ("inhibit_rules", "receivers", "templates"):
        config[key] = [*(i.value for i in getattr(OURS, key)), *(config.get(key) or [])]
    return config


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_ours_comes_first_and_the_rest_says_what_it_said(text: str) -> None:
    assert parsed(merge(text, OURS, "am.yml")) == expected(text)


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_without_ours_it_is_theirs_to_the_byte(text: str) -> None:
    assert without_ours(merge(text, OURS, "am.yml")) == text


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_second_merge_changes_nothing(text: str) -> None:
    once = merge(text, OURS, "am.yml")
    assert merge(once, OURS, "am.yml") == once


def test_a_new_merge_takes_the_place_of_the_old() -> None:
    other = Additions([Item({"receiver": "tailburn-ticket"})], [], [], [])
    assert merge(merge(BLOCK, OURS, "am.yml"), other, "am.yml") == merge(BLOCK, other, "am.yml")


def test_windows_ends_of_lines_and_a_byte_order_mark_stay() -> None:
    text = "\ufeff" + BLOCK.replace("\n", "\r\n")
    merged = merge(text, OURS, "am.yml")
    assert merged.startswith("\ufeff#")
    assert merged.count("\n") == merged.count("\r\n")
    assert merge(merged, OURS, "am.yml") == merged


def test_a_last_line_without_an_end_gets_one() -> None:
    text = "route: {receiver: desk}\nreceivers:\n- name: desk"
    assert without_ours(merge(text, OURS, "am.yml")) == text + "\n"


def test_a_lost_mark_costs_nobody_a_line() -> None:
    """What stands between a begin and the end of another block may be the user's."""
    merged = merge(BLOCK, OURS, "am.yml")
    lines = merged.splitlines(keepends=True)
    marks = [i for i, line in enumerate(lines) if "<<< tailburn" in line or ">>> tailburn" in line]
    for mark in marks:
        damaged = "".join(lines[:mark] + lines[mark + 1 :])
        with pytest.raises(ConfigError, match=r"^am\.yml:\d+: a mark of tailburn without") as told:
            merge(damaged, OURS, "am.yml")
        line = int(str(told.value).split(":")[1])
        assert "tailburn" in damaged.splitlines()[line - 1]


NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
ROUTES = st.recursive(
    st.fixed_dictionaries({"receiver": NAMES}),
    lambda below: st.fixed_dictionaries(
        {"receiver": NAMES}, optional={"routes": st.lists(below, max_size=2), "continue": st.none()}
    ),
    max_leaves=5,
)
CONFIGS = st.fixed_dictionaries(
    {"route": ROUTES},
    optional={
        "receivers": st.lists(st.fixed_dictionaries({"name": NAMES}), max_size=3),
        "inhibit_rules": st.lists(st.just({"equal": ["a"]}), max_size=2),
        "templates": st.lists(NAMES, max_size=2),
        "global": st.dictionaries(NAMES, NAMES, max_size=2),
    },
)


@settings(max_examples=60)
@given(CONFIGS, st.booleans(), st.integers(0, 3))
def test_any_configuration_in_any_style_keeps_its_bytes(
    config: dict[str, Any], in_flow: bool, offset: int
) -> None:
    yaml = YAML()
    yaml.default_flow_style, yaml.width = in_flow, 4096
    yaml.indent(mapping=2 + offset, sequence=2 + offset, offset=offset)
    stream = StringIO()
    yaml.dump(config, stream)
    text = stream.getvalue()
    merged = merge(text, OURS, "am.yml")
    assert parsed(merged) == expected(text)
    assert without_ours(merged) == text


BAD = {
    "": "am.yml:1: want a configuration of Alertmanager",
    "receivers: []\n": "am.yml:1: route: is missing",
    "global: {}\nroute:\n": "am.yml:2: route: '' want a mapping",
    "route:\n  receiver: a\n  routes: none\n": "am.yml:3: route.routes: 'none' want a list",
    "x: &r [{receiver: a}]\nroute:\n  receiver: a\n  routes: *r\n": "am.yml:4: route.routes: want",
    "route:\n  receiver: a\n  routes: &r\n  - receiver: a\n": "am.yml:3: route.routes: want a list",
    "route: {receiver: a}\ntemplates: ~\n": "am.yml:2: templates: '~' want a list",
    "route: {receiver: a}\n---\nroute: {}\n": "am.yml:2: but found another document",
    "route: [\n": "am.yml:2: ",
    "route:\n\treceiver: a\n": "am.yml:2: ",
    "route: {receiver: a}\nreceivers:\n- name: tailburn-page\n": "am.yml:3: receivers.name: 'tail",
    "{route: {receiver: a}, templates: }\n": "am.yml:1: templates: '' want a list",
    "[" * 2_000: "am.yml:1: is nested too deeply",
}


@pytest.mark.parametrize("text", BAD, ids=[repr(text[:40]) for text in BAD])
def test_what_can_not_be_merged_is_told_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        merge(text, OURS, "am.yml")
    assert str(raised.value).startswith(BAD[text])
