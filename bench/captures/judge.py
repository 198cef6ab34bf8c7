"""The checks that every capture has to pass, and the verdict over them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.captures.case import Case
from bench.captures.checks import Check, Pair, equal, every, median_within, within
from bench.captures.matching import Found, Matching, match
from bench.captures.planted import nothing_planted
from bench.captures.recorded import group, read_bodies
from bench.captures.rows import Row
from tailburn.engine.names import CLOCK_COLUMNS, HOPS, UNATTRIBUTED

LATE_S = 1.0  # an end this far past the client's is a span's fault, not the hop's


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one capture."""

    case: Case
    requests: int
    found: int
    extra: int
    joined: str
    clocks_right: str
    wait: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


def judge(case: Case, captures: Path, rows: Sequence[Row], store: Path | None = None) -> Verdict:
    """Compares the rows of one capture with its truth, and its store with what may be at rest."""
    sent = case.read(case.log_file(captures), case.runs)
    groups = group(read_bodies(case.spans_folder(captures)), sent)
    matching = match(case.serves, groups, rows)
    joins = _joined(case, matching)
    clocks = [_ttft(case, matching.found), _e2e(case, matching.found)]
    checks = [
        *_counts(matching, len(sent)),
        joins,
        *clocks,
        *_tokens(matching.found),
        _outcomes(case, matching.found),
        _refused(matching),
        _attempts(case, matching),
        *_nulls(matching.found, rows),
        *_sums(rows),
        _late_ends(case, matching),
        every("decode holds nothing before the first token", len(rows), _early_decode(rows)),
        *_waits(case, matching.found),
        *case.more(matching, captures),
        *([nothing_planted(store)] if store else []),
    ]
    return Verdict(
        case,
        requests=len(sent),
        found=len(matching.found),
        extra=len(matching.surplus),
        joined=f"{joins.got}/{joins.expected}",
        clocks_right=", ".join(f"{check.got}/{check.expected}" for check in clocks),
        wait=_wait_words(case, matching.found),
        checks=tuple(checks),
    )


def _counts(matching: Matching, sent: int) -> Iterator[Check]:
    missing = [f"{s.key} trace {s.trace_id}" for s in matching.missing]
    yield every("a row for every request of the client's log", sent, missing)
    strays = [_name(row) for row in matching.surplus]
    yield equal("no row beyond one per request", 0, len(strays), strays)
    alone = len(matching.alone) + len(matching.alone_missing)
    lost = [f"traces {sorted(lost.traces)}" for lost in matching.alone_missing]
    yield every("a row for every request that no id leads to a client", alone, lost)


def _name(row: Row) -> str:
    anchor = row.text("anchor_span_id")
    return f"row {row.text('request_id')} trace {row.text('trace_id')} anchor {anchor}"


def _joined(case: Case, matching: Matching) -> Check:
    wrong = []
    total = 0
    for key, of_request, row in matching.all():
        sides = {"gateway": case.is_gateway, "engine": case.is_engine}
        there = [side for side, test in sides.items() if of_request.having(test)]
        if len(there) + bool(of_request.sent and case.client_spans) < 2:
            continue
        total += 1
        lacking = [side for side in there if row.seconds(f"e2e_{side}_s") is None]
        if lacking:
            wrong.append(f"{key}: no {' and no '.join(lacking)} in {_name(row)}")
    return every("gateway and engine joined where an id leads to them", total, wrong)


def _ttft(case: Case, found: Sequence[Found]) -> Check:
    pairs = [
        Pair(f.sent.key, f.sent.ttft_s, f.row.seconds("ttft_client_s"))
        for f in found
        if f.sent.ttft_s is not None and case.ttft_known(f.group, f.sent)
    ]
    return within("TTFT at the client", pairs, case.ttft_tolerance_s, case.ttft_share, "s")


def _e2e(case: Case, found: Sequence[Found]) -> Check:
    pairs = [
        Pair(f.sent.key, f.sent.e2e_s, f.row.seconds("e2e_client_s"))
        for f in found
        if case.client_spans and (f.sent.outcome == "ok" or case.own_outcome)
    ]
    return within("E2E at the client", pairs, case.e2e_tolerance_s, 0.99, "s")


def _tokens(found: Sequence[Found]) -> Iterator[Check]:
    for kind in ("prompt", "output"):
        wrong = []
        ok = [f for f in found if f.sent.outcome == "ok"]
        for f in ok:
            want = f.sent.prompt_tokens if kind == "prompt" else f.sent.output_tokens
            got = f.row.count(f"{kind}_tokens")
            if want != got:
                wrong.append(f"{f.sent.key}: want {want}, got {got}")
        yield every(f"{kind} tokens equal", len(ok), wrong)


def _outcomes(case: Case, found: Sequence[Found]) -> Check:
    wrong = []
    for f in found:
        outcome = f.row.text("outcome")
        right = outcome == f.sent.outcome
        if not case.own_outcome and f.sent.outcome == "cancelled":
            right = outcome != "ok"
        if not right:
            wrong.append(f"{f.sent.key}: want {f.sent.outcome}, got {outcome or 'null'}")
    return every("outcome as the client saw it", len(found), wrong)


def _refused(matching: Matching) -> Check:
    """Where no client is known, the status that the server wrote into an attribute."""
    refused = [
        (group, row)
        for group, row in matching.alone
        if any(span.text("status_code")[:1] in ("4", "5") for span in group.spans)
    ]
    wrong = [
        f"{_name(row)}: got {row.text('outcome') or 'null'}"
        for _, row in refused
        if row.text("outcome") != "error"
    ]
    return every("an error status without a client is an error", len(refused), wrong)


def _attempts(case: Case, matching: Matching) -> Check:
    wrong = []
    pairs = list(matching.all())
    for key, of_request, row in pairs:
        right, got = case.tries(of_request), row.count("attempts")
        if got not in right:
            wrong.append(f"{key}: want {' or '.join(map(str, sorted(right)))}, got {got}")
    return every("attempts counted", len(pairs), wrong)


def _nulls(found: Sequence[Found], rows: Sequence[Row]) -> Iterator[Check]:
    whole = [f for f in found if not f.sent.streamed]
    wrong = [f.sent.key for f in whole if f.row.seconds("ttft_client_s") is not None]
    yield every("no TTFT at the client where nothing was streamed", len(whole), wrong)
    zeros = [
        f"{_name(row)}: {column}"
        for row in rows
        for column in CLOCK_COLUMNS
        if column.startswith("ttft_") and row.seconds(column) == 0
    ]
    yield equal("no TTFT of zero", 0, len(zeros), zeros)


def _sums(rows: Sequence[Row]) -> Iterator[Check]:
    to_first = [(row, row.ttft_ns, row.ttft_parts_ns) for row in rows]
    yield _sum_check("breakdown to the first token", to_first)
    after = [(row, row.decode_ns, row.decode_parts_ns) for row in rows]
    yield _sum_check("breakdown after the first token", after)


def _sum_check(name: str, sums: Sequence[tuple[Row, int | None, int | None]]) -> Check:
    wrong = [
        f"{_name(row)}: clock {clock} ns, parts {parts} ns"
        for row, clock, parts in sums
        if clock is not None and clock != parts
    ]
    told = sum(clock is not None for _, clock, _ in sums)
    return every(f"{name} sums to its clock", told, wrong)


def _late_ends(case: Case, matching: Matching) -> Check:
    """No row lasts past what the client saw, also where only a log joins row and client."""
    ends = {f.sent.request_id: f.sent for f in matching.found if f.sent.request_id}
    pairs = [(f.sent, f.row) for f in matching.found if f.sent.outcome == "ok"]
    for of_request, row in matching.alone:
        for sent in {ends.get(span.text("request_id")) for span in of_request.spans} - {None}:
            if sent is not None and sent.outcome == "ok":
                pairs.append((sent, row))
    wrong = []
    for sent, row in pairs:
        clocks = [row.seconds(f"e2e_{side}_s") or 0.0 for side in ("client", "gateway", "engine")]
        beyond = max((row.count("end_ns") or 0) - sent.end_ns, 0) / 1e9
        if max(clocks) > sent.e2e_s + LATE_S or beyond > LATE_S:
            wrong.append(f"{sent.key}: E2E {max(clocks):.1f} s, client {sent.e2e_s:.1f} s")
    return every(f"no E2E more than {LATE_S:g} s past the client's", len(pairs), wrong)


def _early_decode(rows: Sequence[Row]) -> list[str]:
    return [_name(row) for row in rows if row.seconds("ttft_decode_s")]


def _waits(case: Case, found: Sequence[Found]) -> Iterator[Check]:
    wait = case.wait
    if wait is None:
        return
    known = [
        (f, truth)
        for f in found
        if f.sent.phase == wait.phase and (truth := wait.truth(f.group, f.sent)) is not None
    ]
    held: dict[str, list[float]] = {}
    for part, hops in wait.parts.items():
        pairs = [Pair(f.sent.key, truth[part] / 1e9, f.row.ttft_in(hops)) for f, truth in known]
        held[part] = sorted(pair.got or 0.0 for pair in pairs)
        yield median_within(f"{wait.phase}: wait in {part}, median", pairs, 0.005)
        yield within(f"{wait.phase}: wait in {part}, each request", pairs, 0.005, 0.9, "s")
    if not known:
        return
    most = max(held, key=lambda part: held[part][len(known) // 2])
    yield Check(
        f"{wait.phase}: who held most of the wait",
        " or ".join(wait.owner),
        most,
        most in wait.owner,
    )


def _wait_words(case: Case, found: Sequence[Found]) -> str:
    """The hop that held most of the phase's wait at the median, as the rows say."""
    if case.wait is None:
        return "not told"
    rows = [f.row for f in found if f.sent.phase == case.wait.phase and f.row.ttft_ns is not None]
    if not rows:
        return "no first token found"
    middle = {
        hop: sorted(row.ttft_in((hop,)) for row in rows)[len(rows) // 2]
        for hop in (*HOPS, UNATTRIBUTED)
    }
    most = max(middle, key=lambda hop: middle[hop])
    return f"{most} {middle[most]:.2f} s"
