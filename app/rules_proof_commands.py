"""`tailburn rules check` and `tailburn rules test`: whether rules can work, and that they do."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import AsJson, SloInput, SloPaths


def check_rules(
    paths: SloPaths = None,
    inputs: SloInput = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 for warnings too, not for errors only.")
    ] = False,
    prometheus: Annotated[
        str | None,
        typer.Option(
            "--prometheus", metavar="URL", help="Ask this one for series, buckets and retention."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="PER_S",
            min=0,
            help="Requests/s of the quietest label set; --prometheus counts it for itself.",
        ),
    ] = None,
    retention: Annotated[
        str | None,
        typer.Option(
            "--retention", metavar="TIME", help="How far back Prometheus answers, such as 15d."
        ),
    ] = None,
    existing: Annotated[
        list[Path] | None,
        typer.Option(
            "--existing",
            metavar="FILE",
            help="Rules or dashboards of yours: look for names of older guides; repeatable.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Find what is well written and can not work: one line for each finding, with its code.

    tailburn rules check slo/ --prometheus http://localhost:9090
    """
    from tailburn.app.rules_checking import known_from, lines_of
    from tailburn.app.slo_files import load_given
    from tailburn.app.terminal.output import json_lines
    from tailburn.app.terminal.text import harmless, many
    from tailburn.rules.lint.checks import lint, lint_text
    from tailburn.rules.lint.finding import Severity

    slos = load_given(paths, inputs)
    texts = [(str(path), lines_of(path)) for path in existing or ()]
    known = known_from(rate, retention, prometheus)
    findings = list(lint(slos, known))
    for file, lines in texts:
        findings += lint_text(file, lines, known)
    if json:
        json_lines(finding.as_row() for finding in findings)
    else:
        for finding in findings:
            typer.echo(harmless(str(finding)))
        if not findings:
            typer.echo(f"ok, {many(len(slos), 'SLO')}")
    if any(strict or finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(1)


def test_rules(
    paths: SloPaths = None,
    inputs: SloInput = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="FILE|DIR|-",
            help="Test these rules. Default: those that would be generated.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Keep rules and tests here, for promtool in your CI."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Write unit tests for the rules of SLOs and run them with promtool; ends with 1 if one fails.

    Each test is a course of traffic (an outage, a slow burn, a gap in the data, ...) and asks
    every alert just before and just after it must come and go.

    tailburn rules test slo/ --out tests/
    """
    from tailburn.app.promtool import find_promtool
    from tailburn.app.rules_testing import run_all, write_tests
    from tailburn.app.slo_files import load_given
    from tailburn.app.terminal.output import json_lines
    from tailburn.app.terminal.text import harmless, many

    slos = load_given(paths, inputs)
    with tempfile.TemporaryDirectory(prefix="tailburn-") as temporary:
        folder = out or Path(temporary)
        written = write_tests(slos, None if rules is None else Path(rules), folder)
        if not written:
            typer.echo("nothing to test: no budget and no alert can be fed", err=True)
            return
        failed = 0
        for tested in run_all(find_promtool(), written):
            failed += not tested.verdict.passed
            if json:
                json_lines([tested.as_row()])
                continue
            told = "ok" if tested.verdict.passed else "FAILED"
            asked = f"{many(tested.courses, 'course')}, {many(tested.questions, 'question')}"
            typer.echo(f"{tested.slo}: {tested.path.name}: {asked}: {told}")
            if not tested.verdict.passed:
                for line in tested.verdict.output.splitlines():
                    typer.echo(f"  {harmless(line)}")
    if failed:
        raise typer.Exit(1)
