"""What the loop has told, as `Attempts`; and the token instants that belong to them."""

import numpy as np

from tailburn.lab.records import Attempts
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w
from tailburn.lab.world.layout import State


def attempts_of(s: State) -> Attempts:
    """The rows that the loop has put out, with token instants where they are kept."""
    rows = int(s.vary[w.OUT_ROWS])
    turned = np.ascontiguousarray(s.out[:rows].T)
    columns = enumerate(Attempts.columns())
    told = Attempts(**{one.name: turned[i].astype(one.kind) for i, one in columns})
    if s.fixed[w.WANT_TOKENS]:
        lengths = np.where(turned[w.TOLD] >= 0, turned[w.DONE_TOKENS], 0)
        told.token_offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        starts = np.repeat(turned[w.TOLD] - told.token_offset[:-1], lengths)
        told.tokens = s.engines.tokens[starts + np.arange(told.token_offset[-1])]
        # They leave the engine as much later as the first one does.
        shift = told.engine_first - _first(told)
        told.tokens = told.tokens + np.repeat(shift, lengths)
    return told


def _first(told: Attempts) -> np.ndarray:
    first = told.engine_first.copy()
    some = np.diff(told.token_offset) > 0
    first[some] = told.tokens[told.token_offset[:-1][some]]
    return first


def keep_live_tokens(s: State) -> float:
    """Move the token instants of attempts under way to the front; the share they fill."""
    calls, seq, tokens = s.calls, s.engines.seq, s.engines.tokens
    live = np.flatnonzero((calls[:, w.STAGE] > 0) & (calls[:, w.TOKENS_AT] >= 0))
    live = live[np.argsort(calls[live, w.TOKENS_AT])]
    used = 0
    for slot in live:
        at = calls[slot, w.TOKENS_AT]
        room = min(calls[slot, w.OUTPUT], calls[slot, w.MAX_TOKENS])
        tokens[used : used + room] = tokens[at : at + room].copy()
        calls[slot, w.TOKENS_AT] = used
        if calls[slot, w.SLOT] >= 0:
            seq[calls[slot, w.SLOT], c.TOKENS_AT] = used
        used += room
    s.vary[w.TOKENS_USED] = used
    return float(used / len(tokens))
