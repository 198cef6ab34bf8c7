"""A running service beside targets that go wrong in every way, and get well again.

What it reads of a good one, what it is sent, its memory, its log and its alerts stay as if they
were not there.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from bench.service.running import Process
from tests.collector.scrape.answers import says
from tests.hostile.targets import CROWDED, GOOD, SERIES, Bad, listening_all, of_every_kind
from tests.live.kept import asked
from tests.live.service import Service, living, run, until
from tests.live.told import BEGIN_NS, CLOSES, MINUTE_NS, SLOW_AT, Sender, course

EVERY_S = 10.0
"""A round, and how long an answer may take: much longer than one that comes does."""

CHECK_S = 30.0
"""So long `signals check` waits: it runs beside the service, and reads all at once."""

ROUNDS = 3
MINUTES = 120
"""Of told time. Requests are slow from the middle on: there alerts fire as they should."""

MOST_GROWTH_BYTES = 200_000_000
"""The answers of three that pour, each held up to its bound and once more while it is joined."""

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  vantage: client
  clocks: {ttft: {acceptable: {p95: 600ms}, critical: {p50: 1s}}}
  availability: 99%
"""
_ROUNDS_OF = """
    SELECT count(DISTINCT received_ns) FROM read_parquet(?, union_by_name = true)
    WHERE resource LIKE ? AND name = 'requests_running'
"""
_SERIES_OF = """
    SELECT DISTINCT n FROM (
        SELECT count(DISTINCT value) AS n FROM read_parquet(?, union_by_name = true)
        WHERE resource LIKE ? AND name = 'preemptions' GROUP BY received_ns
    )
"""
_FLIPS = "SELECT at_ns, alertname, severity FROM alert_flips WHERE new = 'firing' ORDER BY at_ns"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_bad_targets_cost_nobody_but_themselves(tmp_path: Path) -> None:
    bad, good = of_every_kind(EVERY_S), Bad(says(GOOD), "")
    with listening_all({"good": good, "crowded": says(CROWDED), **bad}) as addresses:
        names = {address: name for name, address in addresses.items()}
        well_ones = [addresses["good"], addresses["crowded"]]
        (tmp_path / "targets.json").write_text(json.dumps([{"targets": well_ones}]))
        (tmp_path / "slo.yaml").write_text(SLO)
        paces = ("--scrape-interval-s", EVERY_S, "--scrape-timeout-s", EVERY_S)
        flags = ("--targets-files", tmp_path / "targets.json", "--slo", tmp_path / "slo.yaml")
        bodies = course(MINUTES)
        well = round(len(bodies) * SLOW_AT)
        with (
            living(tmp_path / "store", *CLOSES, *flags, *paces) as service,
            Sender(service, bodies[:well], pause_s=0.25) as sender,
        ):
            until(lambda: sender.acknowledged > 0)
            _rounds(good, 2)  # by then all its code has run once
            until(lambda: _is_over(service))
            began, warm = len(service.said), len(good.asked_s)
            (tmp_path / "targets.json").write_text(json.dumps([{"targets": list(names)}]))
            _rounds(good, 2)
            process = Process(service.pid)
            at_first_bytes = process.rss_bytes()
            with process.watched(every_s=0.02) as memory:
                for one in bad.values():
                    one.is_well = False
                before = sender.acknowledged
                _rounds(good, ROUNDS)
                meanwhile = sender.acknowledged - before
                checked = _checked(tmp_path / "targets.json")
                _rounds(good, 1)
            in_trouble = _told(service.said[began:], bad)
            growth_bytes = memory.peak_bytes - at_first_bytes
            assert growth_bytes < MOST_GROWTH_BYTES

            for one in bad.values():
                one.is_well = True
            until(lambda: _told(service.said[began:], bad)["is read again"] == len(bad))
            sender.join()
            with Sender(service, bodies[well:]) as rest:
                rest.join()
            until(lambda: bool(asked(service.store, _FLIPS)))
            assert service.stop() == 0
            said = service.said[began:]

    times = {name: len(one.asked_s) for name, one in bad.items()}
    assert len(good.asked_s) >= max(times.values()) - 1, "the good one is read in each round"
    signals = f"{tmp_path}/store/signals/*/*/*.parquet"
    ((stored,),) = duckdb.execute(_ROUNDS_OF, [signals, f"%{addresses['good']}%"]).fetchall()
    of_crowded = duckdb.execute(_SERIES_OF, [signals, f"%{addresses['crowded']}%"]).fetchall()
    waits_s = [b - a for a, b in zip(good.asked_s, good.asked_s[1:], strict=False)]
    print(
        f"{len(good.asked_s)} rounds, at most {max(waits_s):.1f} s apart; memory grew by "
        f"{growth_bytes / 1e6:.0f} MB; the slowest acknowledgement took {sender.slowest_s:.2f} s"
    )
    is_stored = "what it says is stored, but for `signals check`, and a last one that was cut off"
    assert stored >= len(good.asked_s) - warm - 2, is_stored
    assert of_crowded == [(SERIES,)], "and so is each of many series, each time"
    assert (sender.acknowledged, sender.again) == (well, -(-well // 37))
    assert meanwhile >= ROUNDS, "what is sent is taken meanwhile"

    assert {names[at] for at in checked} == bad.keys()
    for name, one in bad.items():
        at = addresses[name]
        line = f"target {at} ({tmp_path}/targets.json:1){one.named}"
        assert (in_trouble[line], said.count(line)) == (1, 1), f"{name}: told once\n{said}"
        why = one.named.removeprefix(": ").removeprefix(" is read, but ")
        assert why.replace(f"{EVERY_S:g} s", f"{CHECK_S:g} s") in checked[at], name
    assert _told(said, bad) == in_trouble + Counter({"is read again": len(bad)})
    assert "Traceback" not in said and " ERROR " not in said

    slow_ns = BEGIN_NS + round(MINUTES * SLOW_AT) * MINUTE_NS
    fired_ns = [at_ns for at_ns, _, _ in asked(tmp_path / "store", _FLIPS)]
    assert fired_ns and min(fired_ns) > slow_ns, "no alert but those of slow requests"


def _rounds(good: Bad, count: int) -> None:
    before = len(good.asked_s)
    until(lambda: len(good.asked_s) >= before + count)


def _is_over(service: Service) -> bool:
    """Whether each target that was too slow while the service began is well again."""
    return service.said.count("no whole answer") == service.said.count("is read again")


def _told(said: str, bad: Mapping[str, Bad]) -> Counter[str]:
    """Lines of the log about targets, each cut behind what is wrong with it."""
    found: Counter[str] = Counter()
    for line in said.splitlines():
        if "target 127.0.0.1:" in line:
            text = line[line.index("target ") :]
            named = next((one.named for one in bad.values() if one.named in text), "")
            end = text.find(named) + len(named) if named else len(text)
            found["is read again" if text.endswith("is read again") else text[:end]] += 1
    return found


def _checked(file: Path) -> dict[str, str]:
    """What `signals check` says is wrong, by target."""
    pace = {f"TAILBURN_SCRAPE_{name}_S": str(CHECK_S) for name in ("INTERVAL", "TIMEOUT")}
    answer = run("signals", "check", "--file", file, "--json", **pace)
    assert answer.returncode == 1, answer.stderr
    rows = map(json.loads, answer.stdout.splitlines())
    return {row["target"]: row["note"] for row in rows if row["signal"] is None}
