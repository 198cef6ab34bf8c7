"""`tailburn rules scaling`: what it writes, and what it says of what can't be."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from tailburn.app.cli import cli
from tailburn.app.errors import UserError

CHAT = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  vantage: gateway
  clocks:
    ttft: {acceptable: {p99: 1s}}
  scale_out: {at: 0.8, for: 5m}
"""
BY_MODEL = CHAT.replace("vantage: gateway", "by: [model]\n  vantage: gateway")
OTHER = CHAT.replace("name: chat", "name: code")
PLAIN = CHAT.replace("  scale_out: {at: 0.8, for: 5m}\n", "")


@pytest.fixture
def slo(tmp_path: Path) -> Path:
    file = tmp_path / "chat.yaml"
    file.write_text(CHAT)
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["rules", "scaling", *map(str, arguments)])


def refused(*arguments: object) -> list[str]:
    answer = run(*arguments)
    assert isinstance(answer.exception, UserError)
    assert answer.stdout == ""
    return list(answer.exception.lines)


def test_a_folder_gets_every_part(slo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = run("-i", slo, "-o", out, "--deployment", "chat-8b", "--engine", "vllm")
    assert answer.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "chat-8b.adapter.yaml",
        "chat-8b.drain.yaml",
        "chat-8b.hpa.yaml",
        "chat-8b.keda.yaml",
        "chat.scaling.rules.yaml",
    ]


def test_one_part_is_printed(slo: Path) -> None:
    answer = run("-i", slo, "--part", "keda", "--prometheus", "http://prom:9090")
    assert "kind: ScaledObject" in answer.stdout
    assert "serverAddress: http://prom:9090" in answer.stdout
    assert "scale-waiting" not in answer.stdout
    assert "name the engine with --engine" in answer.stderr


def test_plain_signals_do_not_ask_for_the_cause(slo: Path) -> None:
    printed = run("-i", slo, "--part", "hpa", "--plain").stdout
    assert "tailburn-chat-scale-out\n" in printed
    assert "gated" not in printed


def test_all_that_is_wrong_is_told_at_once(slo: Path) -> None:
    bad = ("--replicas", "9-2", "--kv", "85", "--deployment", "A_B")
    assert refused("-i", slo, "--part", "hpa", *bad) == [
        "--deployment: 'A_B': want lower-case letters, digits and -, at most 54",
        "--replicas: '9-2': want MIN-MAX, such as 2-16, from 1 on",
        "--kv: 85: want a share above 0, at most 1",
    ]


def test_an_slo_by_model_wants_the_model_that_is_scaled(slo: Path) -> None:
    slo.write_text(BY_MODEL)
    hpa = ("-i", slo, "--part", "hpa")
    (line,) = refused(*hpa)
    assert line.startswith("--where: model=VALUE is missing")
    (nearest, _) = refused(*hpa, "--where", "modl=a")
    assert nearest.endswith("did you mean model?")
    assert 'slo="chat",model="a"' in run("-i", slo, "--where", "model=a", "--part", "keda").stdout


def test_the_rules_are_those_of_all_models(slo: Path) -> None:
    slo.write_text(BY_MODEL)
    assert "max by (slo, model)" in run("-i", slo, "--engine", "vllm").stdout
    assert refused("-i", slo, "--waiting", "0") == ["--waiting: 0: want more than 0"]


def test_an_engine_that_can_not_tell_apart_is_refused(slo: Path) -> None:
    slo.write_text(BY_MODEL.replace("[model]", "[tenant]"))
    (line,) = refused("-i", slo, "--engine", "vllm", "--where", "tenant=a")
    assert line.startswith(f"{slo}:3: spec.by: tenant: vllm shows its queue by model only")


def test_an_slo_that_does_not_scale_is_told_what_it_lacks(slo: Path) -> None:
    slo.write_text(PLAIN)
    assert refused("-i", slo)[0].startswith("no SLO says when to scale: want spec.scale_out")


def test_of_several_slos_one_is_named(slo: Path) -> None:
    slo.write_text(f"{CHAT}---\n{OTHER}")
    assert refused("-i", slo) == ["--slo: want one of chat, code: there are several"]
    assert refused("-i", slo, "--slo", "cod")[0].endswith("did you mean code?")
    assert "tailburn-code-scaling" in run("-i", slo, "--slo", "code").stdout


def test_matchers_want_an_engine(slo: Path) -> None:
    assert refused("-i", slo, "--match", "job=a") == [
        "--match: chooses among an engine's series: want --engine too"
    ]
    assert refused("-i", slo, "--engine", "vllm", "--match", "job") == [
        "--match: 'job': want KEY=VALUE"
    ]


SERVICE = ("--tailburn", "http://tailburn:9464")


def test_keda_may_ask_the_service_itself(slo: Path, tmp_path: Path) -> None:
    answer = run("-i", slo, *SERVICE, "--part", "keda", "--token-secret", "tailburn-read")
    documents = list(YAML(typ="safe").load_all(answer.stdout))
    assert [document["kind"] for document in documents] == ["TriggerAuthentication", "ScaledObject"]
    assert {t["type"] for t in documents[1]["spec"]["triggers"]} == {"metrics-api"}
    out = tmp_path / "out"
    assert run("-i", slo, *SERVICE, "-o", out, "--engine", "vllm").exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["chat.drain.yaml", "chat.keda.yaml"]
    assert "valueLocation: scale_kv" in (out / "chat.keda.yaml").read_text()


def test_what_does_not_go_with_the_service_is_told_at_once(slo: Path) -> None:
    both = ("--prometheus", "http://p:9090", "--waiting", "8", "--token-secret", "A_B")
    assert refused("-i", slo, "--part", "keda", "--tailburn", "tailburn:9464", *both) == [
        "--prometheus and --tailburn: KEDA asks one of them",
        "--tailburn: 'tailburn:9464': want the web port, such as http://tailburn:9464",
        "--token-secret: 'A_B': want the name of a Secret",
        "--waiting, --kv: are settings of the service: scale_waiting and scale_kv_ratio",
    ]
    (part,) = refused("-i", slo, *SERVICE, "--part", "hpa")
    assert part.endswith("want one of keda, drain")
    assert refused("-i", slo, *SERVICE)[0].startswith("--part rules: with --tailburn")
    assert refused("-i", slo, "--token-secret", "a") == [
        "--token-secret: is the service's: want --tailburn too"
    ]


def test_an_slo_that_others_count_can_not_be_asked_of_the_service(slo: Path) -> None:
    slo.write_text(CHAT.replace("vantage: gateway", "vantage: engine\n  source: {engine: vllm}"))
    (line,) = refused("-i", slo, *SERVICE, "--part", "keda")
    assert line.startswith(f"{slo}:3: spec.source: the service counts no requests")


def test_engines_that_can_not_tell_the_slo_apart_are_refused(slo: Path) -> None:
    slo.write_text(BY_MODEL.replace("[model]", "[route]"))
    asked = ("--part", "keda", "--engine", "vllm", "--where", "route=a")
    assert refused("-i", slo, *SERVICE, *asked) == ["--engine: no metric of an engine tells route"]
