"""Workloads from files: measured rates by client, or recorded requests.

Which of the two a file is, its columns say; docs/lab-workload.md has both formats.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tailburn.lab.workload import lengths
from tailburn.lab.workload.clients import concentrated, make_clients
from tailburn.lab.workload.errors import WorkloadError, bad_cell, unknown
from tailburn.lab.workload.figures import FIGURES
from tailburn.lab.workload.profiles import (
    DEFAULT_MODEL,
    Lengths,
    MeasuredLengths,
    Profile,
    Recorded,
    SharedLengths,
    clients_of,
    named,
    shaped_rates,
    shared_lengths,
)
from tailburn.lab.workload.rates import BLOCK_S, MeasuredRates
from tailburn.lab.workload.shapes import WEEK_S, WeekShape
from tailburn.lab.workload.tables import Sheet, read_sheet

RATE_COLUMNS = ("client", "ts", "rate", "cv", "pat")
TRACE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
QUANTILES = ("p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9")
LENGTHS_WINDOW_S = 6 * 3600
MOST_BRIDGED = 12
"""Windows in a row that nobody has and that are bridged: two hours. More are an error."""
MOST_CELLS = 50_000_000
MOST_TOKENS = 10_000_000
MOST_PER_S = 100_000.0


def load(path: Path, model: str | None = None, lengths_path: Path | None = None) -> Profile:
    """The workload in a file; WorkloadError names file, row and column of what is wrong.

    lengths_path: length quantiles beside a file of rates; by default the file beside it
    whose name has `length_quantiles` for `rates`; without one, shipped figures.
    """
    sheet = read_sheet(path)
    columns = set(sheet.columns)
    if len(columns & set(TRACE_COLUMNS)) > len(columns & set(RATE_COLUMNS)):
        return _trace(sheet)
    if not columns & set(RATE_COLUMNS):
        raise WorkloadError(
            f"{path}: columns {', '.join(sheet.columns)}; want {', '.join(TRACE_COLUMNS)} "
            f"(recorded requests) or {', '.join(RATE_COLUMNS)} (measured rates)"
        )
    sheet.need(RATE_COLUMNS)
    if lengths_path is None:
        beside = path.with_name(path.name.replace("rates", "length_quantiles"))
        lengths_path = beside if beside != path and beside.is_file() else None
    return _rates(sheet, model, lengths_path)


def measured(name: str, data: Path | None) -> Profile:
    """The named workload from the files in `data` where they are there, else from figures."""
    profile = named(name)
    if data is None:
        return profile
    short = name.removeprefix("azure-")
    curve, trace = data / "azure2024_rpm_digitised.csv.gz", data / f"azure2023_{short}.csv.gz"
    rates = data / "servegen_rates.parquet"
    if name.startswith("azure-") and curve.is_file() and trace.is_file():
        figures = FIGURES[name]
        weights = figures.per_s * concentrated(figures.clients, figures.top_share, figures.carry_90)
        return replace(
            profile,
            source=f"{curve.name} and {trace.name}",
            rates=shaped_rates(figures, weights, week_of(curve, short)),
            lengths=_trace(read_sheet(trace)).lengths,
        )
    if name in ("servegen-m-large", "servegen-m-small") and rates.is_file():
        return replace(load(rates, name.removeprefix("servegen-")), name=name)
    return profile


def week_of(path: Path, trace: str) -> WeekShape:
    """The week shape of one trace in a digitised curve: trace, time_utc, rpm_mid."""
    sheet = read_sheet(path)
    sheet.need(("trace", "time_utc", "rpm_mid"))
    mine = sheet.words("trace") == trace
    if not mine.any():
        raise WorkloadError(f"{path}: no rows of trace {trace!r}")
    rpm = sheet.numbers("rpm_mid", 0, 1e9, "requests/min")[mine]
    times = sheet.words("time_utc")[mine].astype("datetime64[s]").astype(np.int64)
    # 1 January 1970 was a Thursday: three days after a Monday.
    of_week = (times + 3 * 86_400) % WEEK_S
    part = (of_week * 672) // WEEK_S
    total, count = np.bincount(part, rpm, 672), np.bincount(part, minlength=672)
    seen = np.flatnonzero(count)
    curve = np.interp(np.arange(672), seen, total[seen] / count[seen], period=672)
    return WeekShape(curve / curve.mean())


def _trace(sheet: Sheet) -> Profile:
    """Recorded requests: played again as they were, and their lengths to draw from."""
    sheet.need(TRACE_COLUMNS)
    at = sheet.instants("TIMESTAMP")
    prompt = sheet.whole("ContextTokens", 0, MOST_TOKENS, "tokens")
    output = sheet.whole("GeneratedTokens", 0, MOST_TOKENS, "tokens")
    if len(at) < 2 or at[-1] == 0:
        raise bad_cell(
            sheet.path, len(at) + 1, "TIMESTAMP", "no later time", "requests at two times or more"
        )
    span = int(at[-1] + at[-1] / (len(at) - 1))
    if len(at) / span * 1e9 > MOST_PER_S:
        raise WorkloadError(
            f"{sheet.path}: {len(at)} requests within {at[-1]} ns; "
            f"want at most {MOST_PER_S:g} req/s"
        )
    figures = replace(FIGURES["azure-conv"], output_cap=int(output.max()))
    weights = len(at) / span * 1e9 * concentrated(120, figures.top_share, figures.carry_90)
    profile = Profile(
        sheet.path.name,
        str(sheet.path),
        clients_of(figures, weights),
        shaped_rates(figures, weights, WeekShape.flat()),
        SharedLengths(
            lengths.from_samples(np.maximum(prompt, 1))[None],
            lengths.from_samples(np.maximum(output, 1))[None],
            MOST_TOKENS,
        ),
        Recorded(at, prompt, output, span),
    )
    return profile


def _rates(sheet: Sheet, model: str | None, lengths_path: Path | None) -> Profile:
    """Measured rates; a client that has no row in a window asks for nothing then."""
    client = sheet.whole("client", 0, 2**31 - 1, "number of the client")
    ts = sheet.whole("ts", 0, 10**9, "s")
    sheet.check("ts", ts % BLOCK_S == 0, f"a multiple of {BLOCK_S} s, the length of a window")
    rate = sheet.numbers("rate", 0, MOST_PER_S, "req/s")
    cv = sheet.numbers("cv", 0, 1e6, "standard deviation / mean of intervals")
    sheet.check("cv", (cv > 0) | (rate == 0), "more than 0")
    weibull = sheet.words("pat", ("Gamma", "Weibull")) == "Weibull"
    models = sheet.words("model") if "model" in sheet.columns else np.full(len(ts), DEFAULT_MODEL)
    mine = np.ones(len(ts), bool)
    if model is not None:
        mine = models == model
        if not mine.any():
            raise WorkloadError(f"{sheet.path}: {unknown('model', model, list(np.unique(models)))}")
    names, model_at = np.unique(models[mine], return_inverse=True)
    pairs, who = np.unique(np.stack([model_at, client[mine]], axis=1), axis=0, return_inverse=True)
    window = ts[mine] // BLOCK_S
    _check_windows(sheet, np.flatnonzero(mine), who, window)
    windows = int(window.max()) + 1
    if len(pairs) * windows > MOST_CELLS:
        raise WorkloadError(
            f"{sheet.path}: {len(pairs)} clients x {windows} windows; want at most {MOST_CELLS}"
        )
    grid_rate = np.zeros((len(pairs), windows))
    grid_cv = np.ones((len(pairs), windows))
    grid_weibull = np.zeros((len(pairs), windows), bool)
    grid_rate[who, window] = rate[mine]
    grid_cv[who, window] = np.maximum(cv[mine], 0.05)
    grid_weibull[who, window] = weibull[mine]
    bridged = _bridge(window, (grid_rate, grid_cv))
    weights = grid_rate.mean(axis=1)
    if weights.sum() == 0:
        raise bad_cell(sheet.path, sheet.first_row, "rate", "0 in all rows", "a rate above 0")
    figures = FIGURES["servegen-m-large"]
    drawn: Lengths = shared_lengths(figures)
    most = np.full(len(pairs), figures.output_cap)
    source = f"{sheet.path.name}, lengths from shipped figures"
    if lengths_path is not None:
        keys = [(str(names[m]), int(c)) for m, c in pairs]
        drawn, most = _lengths(read_sheet(lengths_path), keys, weights)
        source = f"{sheet.path.name} and {lengths_path.name}"
    if bridged:
        source += f"; {bridged} windows without any row bridged"
    clients = make_clients(weights, figures.mix, most, tuple(map(str, names)), pairs[:, 0])
    rates = MeasuredRates(grid_rate, grid_cv, grid_weibull)
    return Profile(sheet.path.name, source, clients, rates, drawn)


def _check_windows(sheet: Sheet, row: np.ndarray, who: np.ndarray, window: np.ndarray) -> None:
    """No window twice for a client, and no longer time in the middle that nobody has."""
    order = np.lexsort((row, window, who))
    twice = (np.diff(who[order]) == 0) & (np.diff(window[order]) == 0)
    if twice.any():
        at = int(row[order][1:][twice].min())
        raise sheet.fail(at, "ts", "each client's window once")
    seen = np.unique(window)
    gap = np.flatnonzero(np.diff(seen) > MOST_BRIDGED + 1)
    if len(gap):
        last = int(seen[gap[0]])
        at = int(row[window == last].max())
        missing = f"{(last + 1) * BLOCK_S} to {int(seen[gap[0] + 1] - 1) * BLOCK_S}"
        raise sheet.fail(at, "ts", f"rows for every window; none has ts {missing}")


def _bridge(window: np.ndarray, grids: "tuple[np.ndarray, ...]") -> int:
    """Fills windows that no client has from those beside them; how many there were."""
    seen = np.unique(window)
    missing = np.setdiff1d(np.arange(seen[-1] + 1), seen)
    for grid in grids:
        for row in grid:
            row[missing] = np.interp(missing, seen, row[seen])
    return len(missing)


def _lengths(
    sheet: Sheet, clients: "list[tuple[str, int]]", weights: np.ndarray
) -> tuple[MeasuredLengths, np.ndarray]:
    """Tables of lengths by client and window, and each client's longest outputs.

    A client the file leaves out draws from the mixture of all; a window it leaves
    out has the lengths of the client's nearest one before, else after.
    """
    sheet.need(("client", "ts", "field", *QUANTILES))
    who = sheet.whole("client", 0, 2**31 - 1, "number of the client")
    ts = sheet.whole("ts", 0, 10**9, "s")
    field = sheet.words("field")
    models = sheet.words("model") if "model" in sheet.columns else np.full(len(ts), DEFAULT_MODEL)
    tokens = np.stack([sheet.numbers(q, 0, MOST_TOKENS, "tokens") for q in QUANTILES], axis=1)
    for i, q in enumerate(QUANTILES[1:], start=1):
        sheet.check(q, tokens[:, i] >= tokens[:, i - 1], f"at least {QUANTILES[i - 1]}")
    known: dict[tuple[str, int], dict[int, dict[str, int]]] = {}
    for i in np.flatnonzero(np.isin(field, ("input_tokens", "output_tokens"))).tolist():
        client = known.setdefault((str(models[i]), int(who[i])), {})
        client.setdefault(int(ts[i]) // LENGTHS_WINDOW_S, {})[str(field[i])] = i
    windows = int(ts.max()) // LENGTHS_WINDOW_S + 1
    inputs: list[int] = []
    outputs: list[int] = []
    owner: list[int] = []
    row_of = np.full((len(clients), windows), -1)
    for c, key in enumerate(clients):
        for window, both in sorted(known.get(key, {}).items()):
            if len(both) == 2:
                row_of[c, window] = len(inputs)
                inputs.append(both["input_tokens"])
                outputs.append(both["output_tokens"])
                owner.append(c)
    if not inputs:
        raise WorkloadError(
            f"{sheet.path}: no input_tokens and output_tokens of a client of the rates, "
            f"such as {clients[0]}"
        )
    prompt_rows = lengths.from_quantiles(lengths.FIELDS, tokens[inputs])
    output_rows = lengths.from_quantiles(lengths.FIELDS, tokens[outputs])
    share = np.maximum(weights[owner] / np.bincount(owner)[owner], 1e-12)
    prompt_rows = np.vstack([prompt_rows, lengths.mixture(prompt_rows, share)])
    output_rows = np.vstack([output_rows, lengths.mixture(output_rows, share)])
    row_of = _filled(row_of, len(inputs))
    most = output_rows[row_of].max(axis=(1, 2))
    return MeasuredLengths(prompt_rows, output_rows, row_of, LENGTHS_WINDOW_S), most


def _filled(row_of: np.ndarray, other: int) -> np.ndarray:
    """Missing windows take the nearest one before, else after; clients without any, `other`."""
    filled = row_of.copy()
    for w in range(1, filled.shape[1]):
        filled[:, w] = np.where(filled[:, w] < 0, filled[:, w - 1], filled[:, w])
    for w in range(filled.shape[1] - 2, -1, -1):
        filled[:, w] = np.where(filled[:, w] < 0, filled[:, w + 1], filled[:, w])
    return np.where(filled < 0, other, filled)
