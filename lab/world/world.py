"""The world: a fleet in motion, run as far as asked, stopped, copied, and run on.

    world = World(standard(per_s=30), seed=1)
    world.feed(requests)
    world.set("hbm_ratio", 0.8, "pool:main", start_ns=600 * 10**9, end_ns=900 * 10**9)
    attempts = world.advance(1_200 * 10**9)
    samples = world.samples(1_200 * 10**9)

The same seed, requests and settings give the same attempts, however the run is cut.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, FleetArrays, arrays_of
from tailburn.lab.records import Attempts, Requests
from tailburn.lab.world import layout as w
from tailburn.lab.world.by_reference import Reference
from tailburn.lab.world.knobs import KnobError, knob
from tailburn.lab.world.loop import run
from tailburn.lab.world.replicas import set_up
from tailburn.lab.world.samples import Samples
from tailburn.lab.world.scopes import things
from tailburn.lab.world.settings import Setting, Settings
from tailburn.lab.world.state import (
    copy_of,
    more_calls,
    more_engine_slots,
    more_heap,
    more_tokens,
    new_state,
)
from tailburn.lab.world.told import attempts_of, keep_live_tokens

_GROW = {
    w.FULL_CALLS: more_calls,
    w.FULL_HEAP: more_heap,
    w.FULL_ENGINES: more_engine_slots,
}


@dataclass(frozen=True)
class Snapshot:
    """A world as it stood; `World.restore` takes it, in this process or another."""

    fleet: FleetArrays
    state: w.State
    given: tuple[Setting, ...]
    sampled: tuple[Samples, ...]


class World:
    """One fleet in motion. `tokens`: keep the instant of every token (slower)."""

    def __init__(self, fleet: Fleet, seed: int, tokens: bool = False) -> None:
        self.arrays = arrays_of(fleet)
        self._state = new_state(self.arrays, seed, tokens)
        self._settings = Settings(dict(self.arrays.knobs))
        self._sampled: list[Samples] = []
        set_up(Reference(self._state))

    @property
    def fleet(self) -> Fleet:
        """The fleet as it was given."""
        return self.arrays.fleet

    @property
    def now_ns(self) -> int:
        """Until when the world has been run."""
        return int(self._state.vary[w.NOW])

    @property
    def under_way(self) -> int:
        """Attempts begun and not told yet, those that wait to be begun included."""
        return int(self._state.vary[w.UNDER_WAY])

    @property
    def counts(self) -> dict[str, int]:
        """Requests begun, attempts begun, events handled."""
        v = self._state.vary
        return {
            "requests": int(v[w.REQUESTS]),
            "attempts": int(v[w.N_ATTEMPTS]),
            "events": int(v[w.EVENTS]),
        }

    def feed(self, requests: Requests) -> None:
        """What users will ask for, after all that was fed before.

        Raises ValueError with row and column for what cannot be.
        """
        _check(requests, self)
        s = self._state
        old = s.fed[s.vary[w.FED_NEXT] : s.vary[w.FED_COUNT]]
        new = np.empty((len(requests), w.ASKED), np.int64)
        for column, values in enumerate(Requests.arrays(requests).values()):
            if column < w.ASKED:
                new[:, column] = values
        self._state = s._replace(fed=np.concatenate([old, new]))
        self._state.vary[w.FED_NEXT] = 0
        self._state.vary[w.FED_COUNT] = len(old) + len(new)

    def _last_fed(self) -> int:
        """The last arrival fed and not begun, or now."""
        s = self._state
        if s.vary[w.FED_NEXT] < s.vary[w.FED_COUNT]:
            return int(s.fed[s.vary[w.FED_COUNT] - 1, w.ARRIVAL])
        return self.now_ns

    def set(
        self,
        name: str,
        value: float,
        scope: str = "all",
        start_ns: int | None = None,
        end_ns: int | None = None,
    ) -> Setting:
        """Turn a knob from `start_ns` (None: now) until `end_ns` (None: for good).

        Raises KnobError for a name, scope, value or time that it does not take.
        """
        found = things(knob(name).level, scope, self.arrays)
        if not len(found):
            raise KnobError(f"scope {scope!r}: nothing of this fleet is in it")
        start = self.now_ns if start_ns is None else start_ns
        end = w.FOREVER if end_ns is None else end_ns
        setting = Setting(name, float(value), scope, start, end, tuple(int(t) for t in found))
        self._settings.add(setting, self.now_ns)
        self._lay_plan()
        return setting

    def _lay_plan(self) -> None:
        plan, values = self._settings.plan(self.now_ns)
        self._state = self._state._replace(plan=plan, plan_value=values)
        self._state.vary[w.PLAN_NEXT], self._state.vary[w.PLAN_COUNT] = 0, len(plan)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings given so far."""
        return tuple(self._settings.given)

    def value_at(self, name: str, thing: int, at_ns: int) -> float:
        """What the knob of a thing (its index at the knob's level) is at an instant."""
        return self._settings.value_at(name, thing, at_ns)

    def advance(self, until_ns: int) -> Attempts:
        """Run on to `until_ns`, which is not done yet; the attempts that were over by then."""
        if until_ns < self.now_ns:
            raise ValueError(f"until {until_ns} ns is past, the world is at {self.now_ns} ns")
        told: list[Attempts] = []
        while (why := run(Reference(self._state), until_ns)) != w.REACHED:
            if why in _GROW:
                self._state = _GROW[why](self._state)
            elif why == w.FULL_SAMPLES:
                self._drain_samples()
            else:
                told.append(self._drain())
                if why == w.FULL_TOKENS and keep_live_tokens(self._state) > 0.5:
                    self._state = more_tokens(self._state)
        told.append(self._drain())
        self._drain_samples()
        return Attempts.join(told) if len(told) > 1 else told[0]

    def _drain(self) -> Attempts:
        told = attempts_of(self._state)
        self._state.vary[w.OUT_ROWS] = 0
        return told

    def _drain_samples(self) -> None:
        s = self._state
        rows = int(s.vary[w.SCRAPE_ROWS])
        if rows:
            arrays = (s.s_at, s.s_rep, s.s_real, s.s_replicas, s.s_stations, s.s_gates, s.s_pools)
            self._sampled.append(Samples.of([a[:rows].copy() for a in arrays]))
            s.vary[w.SCRAPE_ROWS] = 0

    def samples(self, until_ns: int) -> Samples:
        """Scrapes before `until_ns` that were not given yet."""
        none = Samples.of([a[:0] for a in self._state[-8:-1]])
        found = Samples.join([none, *self._sampled])
        cut = int(np.searchsorted(found.at_ns, until_ns))
        rest = found.rows(slice(cut, None))
        self._sampled = [rest] if len(rest) else []
        return found.rows(slice(0, cut))

    @property
    def station_names(self) -> tuple[str, ...]:
        """Which station each row of `Samples.stations` is: `kind:owner`."""
        f = self.fleet
        return (
            *(f"gateway:{g.name}" for g in f.gateways),
            "guardrail",
            "retrieval",
            *(f"router:{p.name}" for p in f.pools),
            *(f"tokenizer:{r.name}" for r in f.replicas),
        )

    def pools_of_clients(self) -> NDArray[np.int64]:
        """Each client's pool of connections: columns S_* of `layout`."""
        return np.asarray(self._state.stations[: self.fleet.clients.count].copy())

    def snapshot(self) -> Snapshot:
        """The world as it stands, to go on from more than once."""
        return Snapshot(self.arrays, copy_of(self._state), self.settings, tuple(self._sampled))

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from where a snapshot was taken."""
        self.arrays = snapshot.fleet
        self._state = copy_of(snapshot.state)
        self._settings = Settings(dict(self.arrays.knobs), list(snapshot.given))
        self._sampled = list(snapshot.sampled)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "World":
        """A world of its own that goes on from a snapshot."""
        world = cls.__new__(cls)
        world.restore(snapshot)
        return world


def _check(requests: Requests, world: World) -> None:
    """ValueError for the first row that the world cannot take."""
    f = world.fleet
    at = requests.arrival_ns
    before = np.concatenate([[world._last_fed()], at[:-1]])
    for column, bad, want in (
        ("arrival_ns", at < before, "no earlier than the row before, and not past"),
        ("client", _outside(requests.client, f.clients.count), f"0 to {f.clients.count - 1}"),
        ("route", _outside(requests.route, len(f.routes)), f"0 to {len(f.routes) - 1}"),
        ("model", _outside(requests.model, len(f.models)), f"0 to {len(f.models) - 1}"),
        ("prompt_tokens", requests.prompt_tokens < 1, "at least 1"),
        ("output_tokens", requests.output_tokens < 1, "at least 1"),
        ("max_tokens", requests.max_tokens < 1, "at least 1"),
        ("prefix", requests.prefix < 0, "at least 0"),
    ):
        if np.any(bad):
            row = int(np.argmax(bad))
            found = getattr(requests, column)[row]
            raise ValueError(f"requests: row {row}, column {column}: {found}; want {want}")


def _outside(values: NDArray[np.signedinteger], count: int) -> NDArray[np.bool_]:
    return (values < 0) | (values >= count)
