"""Workloads from files: what a good one gives, and what a bad one is told."""

import gzip
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailburn.lab.workload import FIGURES, Workload, WorkloadError, load, measured
from tailburn.lab.workload.lengths import length_at

TRACE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:04.0781490,110,27
2023-11-16 18:17:14.0781490,7437,0
"""
RATES = """model,client,ts,rate,cv,pat,a,b
small,0,0,2.0,1.5,Gamma,0.44,1.1
small,1,0,0.5,1.0,Weibull,1.0,2.0
small,0,600,4.0,1.5,Gamma,0.44,0.5
large,0,600,1.0,3.0,Gamma,0.11,9.0
"""
LENGTHS = """model,client,ts,field,mean,p5,p10,p25,p50,p75,p90,p95,p99,p99.9
small,0,0,input_tokens,100,50,60,80,100,120,140,150,170,200
small,0,0,output_tokens,10,5,6,8,10,12,14,15,17,20
small,1,0,input_tokens,1000,500,600,800,1000,1200,1400,1500,1700,2000
small,1,0,output_tokens,100,50,60,80,100,120,140,150,170,200
"""


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_recorded_requests_come_again_as_they_were(name: str, tmp_path: Path) -> None:
    r = Workload(load(_file(tmp_path, name, TRACE)), seed=1).window(0, 1)
    since = (r.arrival_ns[:4] / 1e9).tolist()
    assert since == pytest.approx([0, 0.052, 0.098189, 10.098189], abs=1e-9)
    assert r.prompt_tokens[:4].tolist() == [4808, 3180, 110, 7437]
    assert r.output_tokens[:4].tolist() == [10, 8, 27, 1]
    # Once more after the recording and one mean interval.
    lap = 10.098189 * 4 / 3
    assert r.arrival_ns[4] / 1e9 == pytest.approx(lap, abs=1e-6)
    assert len(r) == 4 * int(60 / lap) + 3


def test_seconds_are_times_too(tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n100.5,10,1\n101.75,20,2\n"
    r = Workload(load(_file(tmp_path, "t.csv", text)), seed=1).window(0, 1)
    assert r.arrival_ns[:2].tolist() == [0, 1_250_000_000]


def test_recorded_requests_are_thinned_or_laid_over_each_other(tmp_path: Path) -> None:
    lines = [f"{i * 0.25},{100 + i},{1 + i % 9}" for i in range(4000)]
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(lines)
    profile = load(_file(tmp_path, "t.csv", text))
    assert profile.per_s == pytest.approx(4.0)
    for per_s in (0.7, 2.0, 9.5):
        r = Workload(profile, seed=1, per_s=per_s).window(0, 100)
        assert len(r) / 6000 == pytest.approx(per_s, rel=0.06)
        top = profile.rates.mean_per_s[0] / profile.per_s
        assert (r.client == 0).mean() == pytest.approx(top, abs=3.5 * np.sqrt(top / len(r)))
        assert (np.diff(r.arrival_ns) >= 0).all()


def test_measured_rates_come_back_by_client_and_window(tmp_path: Path) -> None:
    workload = Workload(load(_file(tmp_path, "rates.csv", RATES), model="small"), seed=1)
    r = workload.window(0, 2000)
    even = (r.arrival_ns // (600 * 10**9)) % 2 == 0
    hundred_windows = 100 * 600
    for mask, per_s, cv in (
        (even & (r.client == 0), 2.0, 1.5),
        (~even & (r.client == 0), 4.0, 1.5),
        (even & (r.client == 1), 0.5, 1.0),
    ):
        want = per_s * hundred_windows
        assert mask.sum() == pytest.approx(want, abs=5 * cv * np.sqrt(want))
    assert not (~even & (r.client == 1)).any()


def test_measured_burstiness_comes_back_by_client_and_family(tmp_path: Path) -> None:
    text = "client,ts,rate,cv,pat\n0,0,20,4.0,Gamma\n1,0,20,0.5,Gamma\n2,0,20,2.0,Weibull\n"
    r = Workload(load(_file(tmp_path, "rates.csv", text)), seed=1).window(0, 600)
    for client, cv in ((0, 4.0), (1, 0.5), (2, 2.0)):
        gaps = np.diff(r.arrival_ns[r.client == client])
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)
    # A Weibull of CV 2 (shape .54) has fewer tiny intervals than a Gamma of CV 2 (shape .25).
    gaps = np.diff(r.arrival_ns[r.client == 2])
    assert (gaps < 0.01 * gaps.mean()).mean() == pytest.approx(0.107, abs=0.01)


def test_fewer_of_the_same_users_make_smaller_bursts(tmp_path: Path) -> None:
    profile = load(_file(tmp_path, "rates.csv", "client,ts,rate,cv,pat\n0,0,100,4.0,Gamma\n"))
    r = Workload(profile, seed=1, per_s=10.0).window(0, 600)
    gaps = np.diff(r.arrival_ns)
    # A tenth of a renewal process of CV 4.
    assert gaps.std() / gaps.mean() == pytest.approx(np.sqrt(0.9 + 0.1 * 16), rel=0.03)


def test_all_models_of_a_file_are_there_unless_one_is_asked_for(tmp_path: Path) -> None:
    path = _file(tmp_path, "rates.csv", RATES)
    assert load(path).clients.models == ("large", "small")
    assert load(path, model="large").clients.models == ("large",)
    assert load(path).per_s == pytest.approx((2 + 0.5 + 4 + 1) / 2)


def test_lengths_beside_the_rates_are_found_and_used(tmp_path: Path) -> None:
    path = _file(tmp_path, "my_rates.csv", RATES)
    _file(tmp_path, "my_length_quantiles.csv", LENGTHS)
    profile = load(path)
    r = Workload(profile, seed=1, per_s=20.0).window(0, 60)
    assert "my_length_quantiles.csv" in profile.source
    of = {(profile.clients.models[m], c): i for i, (m, c) in enumerate([(0, 0), (1, 0), (1, 1)])}
    small = r.take(r.client == of["small", 0])
    assert np.quantile(small.prompt_tokens, (0.1, 0.5, 0.9)) == pytest.approx([60, 100, 140], abs=3)
    assert np.quantile(small.output_tokens, (0.1, 0.5, 0.9)) == pytest.approx([6, 10, 14], abs=1)
    # The client that the file leaves out draws from all: 3.0 of 3.25 req/s are client 0's.
    other = r.take(r.client == of["large", 0])
    assert (other.prompt_tokens < 300).mean() == pytest.approx(3.0 / 3.25, abs=0.05)


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    csv = _file(tmp_path, "rates.csv", RATES)
    table = pa.csv.read_csv(csv)
    pa.parquet.write_table(table, tmp_path / "rates.parquet")
    a, b = (Workload(load(p), seed=1).window(0, 20) for p in (csv, tmp_path / "rates.parquet"))
    assert np.array_equal(a.arrival_ns, b.arrival_ns)


def _swap(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


BAD_TRACES = {
    "negative length": (
        _swap(TRACE, "3180", "-3180"),
        r"row 3, column ContextTokens: '-3180'; want a number from 0 to 1e\+07 \(tokens\)",
    ),
    "half a token": (
        _swap(TRACE, "110,", "110.5,"),
        "row 4, column ContextTokens: '110.5'; want a",
    ),
    "empty cell": (_swap(TRACE, "110,27", "110,"), "row 4, column GeneratedTokens: empty; want"),
    "not a number": (_swap(TRACE, "110,27", "110,x"), "row 4, column GeneratedTokens: 'x'; want"),
    "time goes back": (
        _swap(TRACE, "18:17:14.07", "18:17:02.07"),
        "row 5, column TIMESTAMP: .*; want a time not before the one of the row above",
    ),
    "no time": (
        _swap(TRACE, "2023-11-16 18:17:04.0319600", "noon"),
        "row 3, column TIMESTAMP: 'noon'",
    ),
    "wrong column": (
        _swap(TRACE, "GeneratedTokens", "OutputTokens"),
        "no column 'GeneratedTokens' among TIMESTAMP, ContextTokens, OutputTokens; want",
    ),
    "seconds, then dates": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n1,9,1\n2023-11-16 18:17:05,9,1\n",
        "row 3, column TIMESTAMP: '2023-11-16 18:17:05'; want a number",
    ),
    "blank line": (_swap(TRACE, "27\n", "27\n\n"), "row 5, column TIMESTAMP: empty; want a time"),
    "three years": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n1,9,1\n100000000,9,1\n",
        r"row 3, column TIMESTAMP: '100000000'; want at most 3.456e\+07 s after the first",
    ),
    "all at once": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n1,9,1\n1.000001,9,1\n",
        r"2 requests within 1000 ns; want at most 100000 req/s",
    ),
    "column twice": (_swap(TRACE, "Context", "Generated"), "column 'GeneratedTokens' twice; want"),
    "other separator": (
        TRACE.replace(",", ";"),
        "columns TIMESTAMP;.*; want TIMESTAMP, .* or client",
    ),
    "short row": (_swap(TRACE, "3180,8", "3180"), "row 3: 2 cells; want 3"),
    "one request": ("\n".join(TRACE.splitlines()[:2]), "column TIMESTAMP: no later time"),
    "no rows": (TRACE.splitlines()[0] + "\n", "no rows; want at least one"),
    "nothing": ("", "not readable as CSV"),
}


@pytest.mark.parametrize("case", BAD_TRACES)
def test_a_bad_trace_is_told_its_row_and_column(case: str, tmp_path: Path) -> None:
    text, says = BAD_TRACES[case]
    path = _file(tmp_path, "trace.csv", text)
    with pytest.raises(WorkloadError, match=f"trace.csv: .*{says}|trace.csv: {says}"):
        load(path)


BAD_RATES = {
    "negative rate": (_swap(RATES, "0.5,1.0,W", "-0.5,1.0,W"), "row 3, column rate: '-0.5'; want"),
    "no such family": (
        _swap(RATES, "0.5,1.0,Weibull", "0.5,1.0,Pareto"),
        "row 3, column pat: 'Pareto'; want Gamma or Weibull",
    ),
    "zero cv": (_swap(RATES, "0.5,1.0,W", "0.5,0,W"), "row 3, column cv: '0'; want more than 0"),
    "between windows": (
        _swap(RATES, "1,0,0.5", "1,60,0.5"),
        "row 3, column ts: '60'; want a multiple of 600 s",
    ),
    "a window twice": (
        _swap(RATES, "small,0,600", "small,0,0"),
        "row 4, column ts: '0'; want each client's window once",
    ),
    "hours that nobody has": (
        _swap(RATES, "large,0,600", "large,0,60000"),
        "row 4, column ts: '600'; want rows for every window; none has ts 1200 to 59400",
    ),
    "nothing asked": (
        "client,ts,rate,cv,pat\n0,0,0,1,Gamma\n",
        "row 2, column rate: 0 in all rows; want a rate above 0",
    ),
    "missing column": (
        RATES.replace(",pat", ",family"),
        "no column 'pat' among model, client, ts, rate, cv, family, a, b; want",
    ),
    "infinite": (_swap(RATES, "0.5,1.0,W", "inf,1.0,W"), "row 3, column rate: 'inf'; want"),
}


@pytest.mark.parametrize("case", BAD_RATES)
def test_bad_rates_are_told_their_row_and_column(case: str, tmp_path: Path) -> None:
    text, says = BAD_RATES[case]
    path = _file(tmp_path, "rates.csv", text)
    with pytest.raises(WorkloadError, match=f"rates.csv: {says}"):
        load(path)


def test_quantiles_that_fall_are_told(tmp_path: Path) -> None:
    path = _file(tmp_path, "rates.csv", RATES)
    beside = _file(tmp_path, "length_quantiles.csv", _swap(LENGTHS, "500,600,800", "500,60,800"))
    with pytest.raises(WorkloadError, match=r"row 4, column p10: '60'; want at least p5"):
        load(path, lengths_path=beside)


def test_rows_of_parquet_count_from_one(tmp_path: Path) -> None:
    columns = {"client": [0, 0], "ts": [0, 600], "rate": [1.0, None], "cv": [1.0, 1.0]}
    pa.parquet.write_table(pa.table({**columns, "pat": ["Gamma"] * 2}), tmp_path / "r.parquet")
    with pytest.raises(WorkloadError, match="row 2, column rate: empty; want a number"):
        load(tmp_path / "r.parquet")


def test_a_missing_file_names_what_is_near(tmp_path: Path) -> None:
    _file(tmp_path, "rates.csv", RATES)
    with pytest.raises(WorkloadError, match=r"no file 'ratse.csv'; did you mean rates.csv"):
        load(tmp_path / "ratse.csv")
    with pytest.raises(WorkloadError, match="no such file"):
        load(tmp_path / "nowhere" / "rates.csv")


@pytest.mark.parametrize(
    "text",
    [
        TRACE.replace("\n", "\r\n"),
        "\ufeff" + TRACE,
        TRACE.replace(",", ", "),
        TRACE + "\n\n",
        TRACE.replace("TIMESTAMP", '"TIMESTAMP"'),
        re.sub(r"(:\d\d\.\d+)", r"\1Z", TRACE),
    ],
    ids=["CRLF", "byte order mark", "spaces", "blank lines at the end", "quotes", "UTC"],
)
def test_a_trace_is_read_however_it_was_written(text: str, tmp_path: Path) -> None:
    plain = Workload(load(_file(tmp_path, "plain.csv", TRACE)), seed=1).window(0, 1)
    r = Workload(load(_file(tmp_path, "trace.csv", text)), seed=1).window(0, 1)
    assert np.array_equal(r.arrival_ns, plain.arrival_ns)
    assert np.array_equal(r.prompt_tokens, plain.prompt_tokens)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), base=st.sampled_from([TRACE, RATES]))
def test_a_damaged_file_loads_or_is_told_and_nothing_else(
    data: st.DataObject, base: str, tmp_path: Path
) -> None:
    raw = bytearray(base.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=3)) or b","
    path = tmp_path / "damaged.csv"
    path.write_bytes(bytes(raw))
    with suppress(WorkloadError):
        assert load(path).per_s > 0


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="a folder; want a file"):
        load(tmp_path)


def test_text_that_is_no_parquet_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="not readable as Parquet"):
        load(_file(tmp_path, "rates.parquet", RATES))


def test_an_unknown_model_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no model 'smal'; did you mean small"):
        load(_file(tmp_path, "rates.csv", RATES), model="smal")


def test_without_its_files_a_named_workload_is_from_figures(tmp_path: Path) -> None:
    assert measured("azure-conv", tmp_path).source.startswith("shipped figures")
    assert measured("azure-conv", None).source.startswith("shipped figures")


@pytest.fixture(name="data")
def _data(shared_dir: Path) -> Path:
    if not (shared_dir / "data" / "servegen_rates.parquet").is_file():
        pytest.skip(f"no measured workloads in {shared_dir / 'data'}")
    return shared_dir / "data"


@pytest.mark.parametrize(
    ("trace", "cv", "dispersion"),
    [("code", 13.2, (13, 72, 164, 138)), ("conv", 1.09, (1.4, 3.9, 16))],
)
def test_azures_hour_is_as_bursty_as_it_was(
    data: Path, trace: str, cv: float, dispersion: tuple[float, ...]
) -> None:
    r = Workload(load(data / f"azure2023_{trace}.csv.gz"), seed=1).window(0, 57)
    t = r.arrival_ns / 1e9
    gaps = np.diff(t)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.02)
    for width, want in zip((1, 10, 60, 300), dispersion, strict=False):
        counts = np.bincount((t // width).astype(int))[: 3420 // width]
        assert counts.var() / counts.mean() == pytest.approx(want, rel=0.12)


@pytest.mark.parametrize("name", ["servegen-m-large", "servegen-m-small"])
def test_servegens_rates_come_back(data: Path, name: str) -> None:
    profile = measured(name, data)
    assert profile.per_s == pytest.approx(FIGURES[name].per_s, rel=0.05)
    share = profile.rates.mean_per_s / profile.per_s
    assert share.max() == pytest.approx(FIGURES[name].top_share, rel=0.05)
    r = Workload(profile, seed=1, per_s=50.0).window(600, 660)
    scale = 50.0 / profile.per_s
    want = [scale * profile.rates.at(np.uint64(1), b).per_s.sum() * 600 for b in range(60, 66)]
    got = np.bincount(r.arrival_ns // (600 * 10**9), minlength=66)[60:]
    # Clients of CV 5 and more are among them: a few percent beside Poisson's one.
    assert got == pytest.approx(want, rel=0.12)


@pytest.mark.parametrize("name", ["azure-code", "azure-conv"])
def test_figures_and_files_of_azure_agree(data: Path, name: str) -> None:
    files, figures = measured(name, data), measured(name, None)
    assert "azure2024" in files.source
    mean = [
        np.array([p.rates.at(np.uint64(1), b).per_s.sum(0).mean() for b in range(1008)])
        for p in (files, figures)
    ]
    by_hour = [m.reshape(168, 6).mean(axis=1) for m in mean]
    # Same noise, so the ratio is that of the shapes.
    assert np.median(np.abs(np.log(by_hour[0] / by_hour[1]))) < 0.15
    for column in ("prompts", "outputs"):
        rows = [getattr(p.lengths, column)[0] for p in (files, figures)]
        for level in (0.1, 0.5, 0.9, 0.99):
            theirs, ours = (length_at(row, level) for row in rows)
            assert ours == pytest.approx(theirs, rel=0.05), (column, level)


def test_lengths_of_servegens_largest_clients_come_back(data: Path) -> None:
    profile = measured("servegen-m-large", data)
    rows = pa.parquet.read_table(data / "servegen_length_quantiles.parquet").to_pylist()
    known = {
        row["client"]: row
        for row in rows
        if (row["model"], row["ts"], row["field"]) == ("m-large", 0, "input_tokens")
    }
    r = Workload(profile, seed=1, per_s=100.0).window(0, 360)
    checked = 0
    for client, row in known.items():
        mine = r.prompt_tokens[r.client == client]
        if len(mine) > 20_000:
            want = [row[q] for q in ("p25", "p50", "p75", "p90")]
            assert np.quantile(mine, (0.25, 0.5, 0.75, 0.9)) == pytest.approx(want, rel=0.05)
            checked += 1
    assert checked >= 3
