"""`tailburn slo explain` and `tailburn slo simulate`, as they are called."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tailburn.app.cli import cli
from tests.engine.slo.workbook import SHARES, TABLE

CHAT = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  vantage: gateway
  window: 30d
  clocks:
    ttft: {acceptable: {p95: 500ms, p99: 1s}}
    tpot: {acceptable: {p95: 60ms}}
  availability: 99.9%
"""


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["slo", *map(str, arguments)], input=stdin)


def rows(answer: Result) -> list[dict[str, Any]]:
    assert answer.exit_code == 0, answer.output
    return [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT)
    return path


def with_objective(tmp_path: Path, line: str, window: str = "window: 30d") -> Path:
    path = tmp_path / "one.yaml"
    head = "apiVersion: tailburn/v1\nkind: ServingSLO\nmetadata: {name: one}\nspec:\n"
    path.write_text(f"{head}  vantage: gateway\n  {window}\n  {line}\n")
    return path


def test_explain_tells_budgets_alike_together(file: Path) -> None:
    answer = run("explain", file)
    assert answer.exit_code == 0
    heads = [line for line in answer.stdout.splitlines() if line.startswith("chat / ")]
    assert heads == [
        f"chat / availability  ({file}:3)",
        f"chat / ttft_p95, tpot_p95  ({file}:3)",
        f"chat / ttft_p99  ({file}:3)",
    ]


def test_explain_says_each_alert_in_words_and_why_a_factor_is_not_the_workbook_s(
    file: Path,
) -> None:
    told = run("explain", file).stdout
    assert (
        "page 1h/5m: when over 1.44 % of the requests of the last 1h were bad, and of the last 5m "
        "still. 2 % of the budget is gone by then. In an outage it fires after 52s and ends 4.9m "
        "after it.\n"
    ) in told
    assert (
        "In an outage it fires after 8.6m and ends 3.6m after it. Set by the time to detect: "
        "the workbook's factor of 14.4 needs 72 % bad.\n"
    ) in told


def test_explain_gives_no_reason_for_a_factor_that_is_the_workbook_s(tmp_path: Path) -> None:
    path = with_objective(tmp_path, "availability: 99%")
    assert "Set by" not in run("explain", path).stdout


def test_explain_reads_standard_input(file: Path) -> None:
    assert run("explain", "-", stdin=CHAT).stdout.startswith("chat / availability")


def test_explain_gives_the_figures_as_json(file: Path) -> None:
    told = rows(run("explain", file, "--at", "10%", "--json"))
    told = [row for row in told if "burn_rate" in row]
    assert [row["objective"] for row in told[::4]] == [
        "availability",
        "ttft_p95",
        "tpot_p95",
        "ttft_p99",
    ]
    assert told[0] == {
        "slo": "chat",
        "objective": "availability",
        "alert": "TailburnBudgetBurn",
        "severity": "page",
        "long_s": 3600,
        "short_s": 300,
        "burn_rate": 14.4,
        "threshold_ratio": 0.0144,
        "limit": "none",
        "budget_used_ratio": 0.02,
        "at": [
            {
                "bad_ratio": 0.1,
                "detection_s": pytest.approx(518.4),
                "reset_s": pytest.approx(256.8),
            }
        ],
    }


def test_explain_tells_the_other_alerts_too(file: Path) -> None:
    told = run("explain", file).stdout
    assert "\nchat, besides the burn of budgets\n" in told
    assert "ticket TailburnTier ttft_p95: TTFT p95 of the last 5m stayed above 500 ms" in told
    assert "{{" not in told
    others = [r for r in rows(run("explain", file, "--at", "10%", "--json")) if "for_s" in r]
    (tier,) = (r for r in others if (r["alert"], r["objective"]) == ("TailburnTier", "ttft_p95"))
    assert tier["at"] == [
        {"bad_ratio": 0.1, "detection_s": 150 + 300, "reset_s": pytest.approx(150)}
    ]


@pytest.mark.parametrize("objective", [0.999, 0.99, 0.95, 0.9])
def test_explain_reproduces_the_workbook_s_table(tmp_path: Path, objective: float) -> None:
    path = with_objective(tmp_path, f"availability: {objective * 100:.12g}%")
    at = ",".join(f"{share * 100:g}%" for share in SHARES)
    told = {
        (row["long_s"], row["short_s"]): row
        for row in rows(run("explain", path, "--textbook", "--at", at, "--json"))
    }
    names = {"1h/5m": (3600, 300), "6h/30m": (21_600, 1800)}
    names |= {"1d/2h": (86_400, 7200), "3d/6h": (259_200, 21_600)}
    for (of, name), (threshold, cells) in TABLE.items():
        if of == objective:
            row = told[names[name]]
            assert row["threshold_ratio"] == pytest.approx(threshold)
            for at_share, cell in zip(row["at"], cells, strict=True):
                times = at_share["detection_s"], at_share["reset_s"]
                if cell is None:
                    assert times == (None, None)
                else:
                    tolerance = 0.51 if cell[1] == int(cell[1]) else 0.051
                    minutes = [time / 60 for time in times]
                    assert minutes == pytest.approx(list(cell), abs=tolerance)


def test_the_rules_own_pairs_are_the_workbook_s_from_99_percent_on(file: Path) -> None:
    def figures(*flags: str) -> list[dict[str, Any]]:
        told = rows(run("explain", file, "--json", *flags))
        narrow = [r for r in told if r["objective"] in ("availability", "ttft_p99")]
        return [{k: v for k, v in r.items() if k != "limit"} for r in narrow if "burn_rate" in r]

    assert figures() == figures("--textbook")


def test_the_textbook_s_page_on_p90_is_said_to_be_impossible(tmp_path: Path) -> None:
    path = with_objective(tmp_path, "availability: 90%")
    told = run("explain", path, "--textbook").stdout
    assert "page 1h/5m: never; its factor of 14.4 wants 144 % bad.\n" in told


def test_explain_fails_where_no_page_can_come_in_time(tmp_path: Path) -> None:
    path = with_objective(tmp_path, "availability: 50%")
    answer = run("explain", path)
    assert answer.exit_code == 1
    assert answer.stderr.strip() == (
        f"{path}:3: one: availability: no page comes however long all requests are bad; want one "
        "within 10m: 50 % of the requests may be bad, so give a higher objective"
    )


@pytest.mark.parametrize(("tier", "code"), [("acceptable", 1), ("critical", 0)])
def test_without_a_budget_a_page_comes_only_from_a_critical_median(
    tmp_path: Path, tier: str, code: int
) -> None:
    path = with_objective(tmp_path, f"clocks: {{ttft: {{{tier}: {{p50: 1s}}}}}}")
    answer = run("explain", path)
    assert (answer.exit_code, "for there is no budget" in answer.stderr) == (code, bool(code))


@pytest.mark.parametrize(
    "window", ["window: 30d", "window: 7d", "window: 1d", "window: 90d", "calendar: month"]
)
@pytest.mark.parametrize("share", ["99.99%", "99%", "97%", "90%", "60%"])
def test_a_page_comes_in_time_for_every_usual_objective(
    tmp_path: Path, share: str, window: str
) -> None:
    answer = run("explain", with_objective(tmp_path, f"availability: {share}", window))
    assert answer.exit_code == 0, answer.stderr


def test_a_batch_pool_needs_no_page_in_ten_minutes(tmp_path: Path) -> None:
    path = with_objective(tmp_path, "completion: {within: 4h, objective: 50%}")
    assert run("explain", path).exit_code == 0


@pytest.mark.parametrize("share", ["0%", "101%", "half", "0.5"])
def test_explain_refuses_what_is_no_share(file: Path, share: str) -> None:
    answer = CliRunner().invoke(cli, ["slo", "explain", str(file), "--at", share])
    assert type(answer.exception).__name__ == "UserError"
    assert f"--at {share!r}: want percents up to 100%, such as 1%,10%,100%" in str(answer.exception)


def test_simulate_tells_which_alert_fires_when_and_what_is_left(file: Path) -> None:
    told = rows(run("simulate", file, "10%:20m", "--objective", "availability", "--json"))
    assert told == [
        {
            "slo": "chat",
            "objective": "availability",
            "type": "firing",
            "alert": "TailburnBudgetBurn",
            "severity": "page",
            "long_s": 3600,
            "short_s": 300,
            "begin_s": pytest.approx(518.4),
            "end_s": pytest.approx(1200 + 256.8),
            "budget_left_ratio": pytest.approx(0.98),
        },
        {
            "slo": "chat",
            "objective": "availability",
            "type": "budget",
            "budget_ratio": 0.001,
            "left_at_end_ratio": pytest.approx(1 - 0.1 * 20 / 43.2),
            "lowest_left_ratio": pytest.approx(1 - 0.1 * 20 / 43.2),
            "lowest_at_s": 1200,
            "overdrawn_at_s": None,
        },
    ]


def test_simulate_draws_what_fires_on_an_axis_of_time(file: Path) -> None:
    told = run("simulate", file, "10%:20m", "--objective", "availability").stdout.splitlines()
    drawn = [line for line in told if "│" in line]
    assert [line.partition(" │")[0].strip() for line in drawn] == [
        "bad",
        "page 1h/5m",
        "budget left",
    ]
    assert drawn[0].endswith("│ up to 10 %")
    assert drawn[1].rstrip("│").endswith("█")
    assert drawn[2].endswith("│ down to 95.4 %")


def test_simulate_goes_through_every_budget_when_none_is_named(file: Path) -> None:
    told = rows(run("simulate", file, "100%:1h", "--json"))
    budgets = [row["objective"] for row in told if row["type"] == "budget"]
    assert budgets == ["availability", "ttft_p95", "tpot_p95", "ttft_p99"]
    assert {row["severity"] for row in told if row["type"] == "firing"} == {"page", "ticket"}


def test_simulate_says_where_few_requests_delay_a_page(file: Path) -> None:
    course = ["0%:1h@0.05", "100%:20m@0.05"]
    told = run("simulate", file, *course, "--objective", "availability").stdout
    assert (
        "page 1h/5m: both windows are over from 60.9m on, it fires at 61.6m: "
        "till then so few bad requests may be chance\n"
    ) in told


def test_simulate_says_where_few_requests_prevent_a_page(file: Path) -> None:
    course = ["100%:2m@0.02", "0%:1h@0.02"]
    told = run("simulate", file, *course, "--objective", "availability").stdout
    assert "No alert fires.\n" in told
    assert "page 1h/5m: both windows are over from 52s to 6.9m, it does not fire: so few" in told


def test_simulate_says_where_an_alert_ends_because_it_may_be_chance(file: Path) -> None:
    course = ["100%:5m@0.02", "0%:3400s@0", "100%:5m@0.005"]
    one = ["--objective", "availability", "--young"]
    told = run("simulate", file, *course, *one).stdout
    assert "page 1h/5m: both windows are over from 0s on, it fires at" in told
    assert "(and 1 more)" in told
    held = [r for r in rows(run("simulate", file, *course, *one, "--json")) if r["type"] == "held"]
    assert [(r["long_s"], r["effect"]) for r in held if r["long_s"] == 3600] == [
        (3600, "delayed"),
        (3600, "ended"),
    ]


def test_simulate_asks_more_of_each_of_many_series(file: Path, tmp_path: Path) -> None:
    by_model = tmp_path / "by.yaml"
    by_model.write_text(CHAT.replace("  vantage: gateway\n", "  vantage: gateway\n  by: [model]\n"))
    course = ["0%:1h@0.05", "100%:20m@0.05", "--objective", "availability", "--json"]
    begins = [
        rows(run("simulate", path, *course, "--series", series))[0]["begin_s"]
        for path, series in ((file, 1), (file, 1000), (by_model, 1), (by_model, 1000))
    ]
    assert begins[0] == begins[1] == begins[2] < begins[3]


def test_simulate_reads_a_course_from_rows(file: Path, tmp_path: Path) -> None:
    course = tmp_path / "course.csv"
    course.write_text("time,requests,bad\n0,600,60\n600,600,60\n")
    by_rows = run("simulate", file, "--from", course, "--json")
    assert rows(by_rows) == rows(run("simulate", file, "10%:20m", "--json"))


def test_simulate_tells_what_is_left_when_the_course_ends_not_when_alerts_do(file: Path) -> None:
    course = ["0%:1h@1", "100%:30m@500"]
    told = rows(run("simulate", file, *course, "--objective", "availability", "--json"))
    month, busy = 30 * 86_400.0 - 1800, 1800 * 500.0
    left = 1 - busy / (month + busy) / 0.001
    assert told[-1]["left_at_end_ratio"] == pytest.approx(left)


def test_simulate_of_a_young_service_fires_at_once(file: Path) -> None:
    told = rows(run("simulate", file, "2%:1h", "--young", "--objective", "availability", "--json"))
    assert told[0]["begin_s"] == 0


def test_simulate_says_when_a_budget_is_overdrawn(file: Path) -> None:
    told = run("simulate", file, "100%:1h", "--objective", "availability").stdout
    assert "the budget is overdrawn from 43.2m on\n" in told


def test_simulate_says_when_nothing_fires(file: Path) -> None:
    told = run("simulate", file, "0.05%:1d", "--objective", "availability").stdout
    assert "No alert fires.\n" in told


def test_simulate_shows_the_first_firings_and_all_of_them_as_json(file: Path) -> None:
    course = ["100%:2m", "0%:2h"] * 60
    one = ["--objective", "availability"]
    assert len(rows(run("simulate", file, *course, *one, "--json"))) > 60
    answer = run("simulate", file, *course, *one)
    drawn = [line.split() for line in answer.stdout.splitlines()]
    lines = sum(line[0] in ("page", "ticket") and "/" in line[1] for line in drawn if line)
    assert lines == 50 + 4  # of the table, and of the plot
    assert answer.stderr == "the first 50; all of them with --json\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "simulate takes a course such as 10%:20m, or --from FILE: one of them"),
        (["10%:20m", "--from", "x.csv"], "one of them"),
        (["10%:20m", "--objective", "tft_p95"], "did you mean ttft_p95?"),
        (["10%:20m", "--slo", "chatt"], "did you mean chat?"),
        (["0.1:20m"], "'0.1' is no percent"),
        (["--from", "missing.csv"], "missing.csv: can't be read"),
    ],
)
def test_simulate_refuses_with_what_is_wanted(
    file: Path, arguments: list[str], reason: str
) -> None:
    answer = run("simulate", file, *arguments)
    assert type(answer.exception).__name__ == "UserError"
    assert reason in str(answer.exception)
