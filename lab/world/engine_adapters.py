"""LoRA adapters of a replica: few slots on the GPU, more in the host's memory, the rest afar."""

import math
from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.draws import key_of, normal

NO_SLOT = -2


@lean
def adapter_slot(e: Any, r: Any, lora: Any) -> Any:
    """The GPU slot that holds the adapter or may take it; NO_SLOT: all are in use."""
    found, oldest = NO_SLOT, c.FOREVER
    for at in range(e.rep[r, c.LORA_SLOTS]):
        if e.adapters[r, at, c.A_ID] == lora:
            return at
        if e.adapters[r, at, c.A_REFS] == 0 and e.adapters[r, at, c.A_USED_NS] < oldest:
            found, oldest = at, e.adapters[r, at, c.A_USED_NS]
    return found


@lean
def _host_has(e: Any, r: Any, lora: Any, now: Any) -> Any:
    """Whether the host's memory holds it; it does from now on, in place of the oldest."""
    adapters = e.adapters
    oldest = 0
    for at in range(e.rep[r, c.LORA_HOST]):
        if adapters[r, at, c.A_HOST_ID] == lora:
            adapters[r, at, c.A_HOST_USED_NS] = now
            return True
        if adapters[r, at, c.A_HOST_USED_NS] < adapters[r, oldest, c.A_HOST_USED_NS]:
            oldest = at
    if e.rep[r, c.LORA_HOST] > 0:
        adapters[r, oldest, c.A_HOST_ID] = lora
        adapters[r, oldest, c.A_HOST_USED_NS] = now
    return False


@lean
def _load_ns(e: Any, r: Any, lora: Any, warm: Any) -> Any:
    """How long the load of an adapter takes: no two alike."""
    median = e.rep[r, c.LORA_WARM_NS] if warm else e.rep[r, c.LORA_COLD_NS]
    spread = e.real[r, c.LORA_SIGMA] * normal(key_of(lora, e.rep[r, c.LORA_LOADS]), r)
    return int(median * math.exp(spread))


@lean
def hold_adapter(e: Any, r: Any, slot: Any, at: Any, now: Any) -> Any:
    """The request uses the slot `at`; returns when the adapter is there (now, or later)."""
    seq, rep, adapters = e.seq, e.rep, e.adapters
    lora = seq[slot, c.LORA]
    ready = now
    if adapters[r, at, c.A_ID] == lora:
        ready = max(now, adapters[r, at, c.A_READY_NS])
    else:
        warm = _host_has(e, r, lora, now)
        ready = now + _load_ns(e, r, lora, warm)
        adapters[r, at, c.A_ID] = lora
        adapters[r, at, c.A_READY_NS] = ready
        rep[r, c.LORA_LOADS] += 1
    if ready > now:
        seq[slot, c.LORA_START_NS], seq[slot, c.LORA_END_NS] = now, ready
    adapters[r, at, c.A_REFS] += 1
    adapters[r, at, c.A_USED_NS] = now
    seq[slot, c.ADAPTER_AT] = at
    return ready


@lean
def let_adapter(e: Any, r: Any, slot: Any) -> None:
    """The request uses its adapter no longer."""
    at = e.seq[slot, c.ADAPTER_AT]
    if at >= 0:
        e.adapters[r, at, c.A_REFS] -= 1
        e.seq[slot, c.ADAPTER_AT] = -1
