"""Who asks: clients with their tenant, kind and habits; and how concentrated they are."""

from dataclasses import dataclass

import numpy as np

from tailburn.lab.workload.errors import WorkloadError, unknown
from tailburn.lab.workload.kinds import AGENT, BATCH, CHAT, KINDS, Kind, spread

NEIGHBOUR = "neighbour"
SWEEP = "sweep"
MAX_TOKENS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


@dataclass(frozen=True)
class Clients:
    """Every client of a workload, by index; names are what telemetry shows.

    The last two never ask by themselves, a change makes them: `sweep` (a batch job without
    a pool of its own) and `neighbour` (a chat tenant that can be given very long prompts).
    """

    names: tuple[str, ...]
    tenants: tuple[str, ...]
    kinds: tuple[Kind, ...]
    routes: tuple[str, ...]
    models: tuple[str, ...]
    tenant_of: np.ndarray
    kind_of: np.ndarray
    route_of: np.ndarray
    model_of: np.ndarray
    max_tokens_of: np.ndarray

    def scope(self, scope: str) -> np.ndarray:
        """The mask of clients that `all`, `tenant:X`, `kind:X` or `client:X` names."""
        if scope == "all":
            return np.arange(len(self.names)) < len(self.names) - 2
        what, _, name = scope.partition(":")
        tables = {
            "tenant": (self.tenants, self.tenant_of),
            "client": (self.names, np.arange(len(self.names))),
            "kind": (tuple(k.name for k in self.kinds), self.kind_of),
        }
        if what not in tables:
            raise WorkloadError(f"scope {scope!r}: want all, tenant:NAME, kind:NAME or client:NAME")
        names, of = tables[what]
        if name not in names:
            raise unknown(what, name, list(names))
        return np.asarray(of == names.index(name))


def make_clients(
    weights: np.ndarray,
    mix: "dict[Kind, float]",
    most_output: np.ndarray,
    models: tuple[str, ...],
    model_of: np.ndarray,
    tenants: int = 12,
) -> Clients:
    """Clients for given long-run rates (`weights`, req/s); the two sleepers are added.

    The largest clients are tenants of their own, the rest share what is left. Each asks for
    a max_tokens of 256, 512, ... that its longest outputs (`most_output`, tokens) fit in.
    """
    kinds = tuple(mix) + tuple(k for k in (CHAT, BATCH, AGENT) if k not in mix)
    kind_of = np.concatenate(
        [spread(weights, mix), [kinds.index(BATCH), kinds.index(CHAT)]]
    ).astype(np.int64)
    order = np.empty(len(weights), np.int64)
    order[np.argsort(-weights, kind="stable")] = np.arange(len(weights))
    own = np.where(order < tenants // 2, order, tenants // 2 + order % (tenants - tenants // 2))
    own = np.minimum(own, len(weights) - 1) if len(weights) < tenants else own
    held = min(tenants, int(own.max()) + 1)
    ladder = np.array(MAX_TOKENS)
    habit = ladder[np.minimum(np.searchsorted(ladder, most_output), len(ladder) - 1)]
    # All routes, in one order, whatever the mix: a fleet names its own by the same indices.
    routes = tuple(dict.fromkeys(k.route for k in (*KINDS, *kinds)))
    return Clients(
        names=(*(f"client-{i}" for i in range(len(weights))), SWEEP, NEIGHBOUR),
        tenants=(*(f"tenant-{i}" for i in range(held)), SWEEP, NEIGHBOUR),
        kinds=kinds,
        routes=routes,
        models=models,
        tenant_of=np.concatenate([own, [held, held + 1]]).astype(np.int64),
        kind_of=kind_of,
        route_of=np.array([routes.index(kinds[k].route) for k in kind_of]),
        model_of=np.concatenate([model_of, [0, 0]]).astype(np.int64),
        max_tokens_of=np.concatenate([habit, [2048, 2048]]).astype(np.int64),
    )


def concentrated(clients: int, top: float, carry_90: int) -> np.ndarray:
    """Shares of traffic, largest first: the first has `top`, the first `carry_90` have 90 %.

    Shares fall as (rank + shift)^-power; of the curves that meet both, the one with the
    least shift at which nobody is larger than the first.
    """
    ranks = np.arange(1, clients, dtype=float)

    def shares(power: float, shift: float) -> np.ndarray:
        rest = (ranks + shift) ** -power
        return np.concatenate([[top], (1 - top) * rest / rest.sum()])

    def meeting(shift: float) -> np.ndarray:
        low, high = 0.0, 60.0
        for _ in range(60):
            middle = (low + high) / 2
            carried = shares(middle, shift)[:carry_90].sum()
            low, high = (middle, high) if carried < 0.9 else (low, middle)
        return shares(high, shift)

    for shift in (0.0, *np.geomspace(0.25, 64.0, 60)):
        found = meeting(float(shift))
        if found[1] <= 0.95 * top:
            break
    return np.sort(found)[::-1]
