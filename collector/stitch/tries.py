"""Attempts and hedges among the calls of one request.

Calls of one kind below one parent are tries of the same thing. One after a failure is a
retry: the failed try and the wait after it are the hop `retry`, unless it had already
delivered tokens, when only the wait is. Two at once are a hedge: the loser costs and does
not delay, and its end is no error of the request. Either way the other is one attempt more.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import EndIs
from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.layout import (
    ATTEMPT,
    CLASS,
    END,
    END_IS,
    FIRST,
    HOP,
    HTTP,
    OUTCOME,
    OWN,
    PARENT,
    PEER,
    REPLICA,
    ROLE,
    SERVICE,
    START,
)
from tailburn.collector.stitch.tree import CALL, EDGE, INNER, SERVER
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOP_INDEX, OUTCOMES

RETRY = HOP_INDEX["retry"]
ERROR, CANCELLED = OUTCOMES.index("error"), OUTCOMES.index("cancelled")
END_IS_LOOSE, END_IS_HEADERS = int(EndIs.LOOSE), int(EndIs.HEADERS)
SEQUENCE_SLACK_NS = 1_000_000
MOST_CALLS = 512
"""Past this many calls in one request, tries are not told apart any more."""

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def failed(narrow: N, k: Int) -> bool:
    """Whether span `k` says of itself that it did not succeed."""
    outcome = narrow[k, OUTCOME]
    return outcome == ERROR or outcome == CANCELLED or narrow[k, HTTP] >= 400


@inlined
def _next_try(wide: W, narrow: N, parent: W, member: W, count: Int, k: Int, i: Int) -> Int:
    """Where in `member`, after place `i`, the next try of what `k` tried is; -1: nowhere."""
    for j in range(i + 1, count):
        m = member[j]
        if narrow[m, ROLE] != narrow[k, ROLE] or narrow[m, CLASS] != narrow[k, CLASS]:
            continue
        if wide[m, PARENT] != wide[k, PARENT] or parent[m] != parent[k] or wide[k, PARENT] == 0:
            continue
        if narrow[k, ROLE] == SERVER and wide[m, OWN] == wide[k, OWN] and wide[k, OWN] != 0:
            continue
        return j
    return -1


@inlined
def _stay_end(narrow: N, parent: W, member: W, count: Int, end: W, k: Int) -> Int:
    """When the server that answered call `k` was done with it; 0 where no span of it came."""
    stay: Int = 0
    for i in range(count):
        m = member[i]
        if narrow[m, ROLE] == SERVER and parent[m] == k:
            stay = max(stay, end[m])
    return stay


@inlined
def find_tries(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    served_ns: Int,
    start: W,
    end: W,
    lost: NDArray[np.int8],
    wait_begin_ns: W,
    wait_end_ns: W,
) -> tuple[Int, Int, bool]:
    """Mark the spans of failed and losing tries in `lost`, and list the waits for retries.

    `served_ns` is when the outermost hop that tells had its first token (0: unknown); `start`
    and `end` are by the anchor's clock. Returns (attempts, waits, hedged).
    """
    attempts, waits, hedged, calls = 1, 0, False, 0
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] != EDGE and narrow[k, ROLE] != SERVER:
            continue
        calls += 1
        if calls > MOST_CALLS:
            break
        at = i
        while not lost[k]:
            at = _next_try(wide, narrow, parent, member, count, k, at)
            if at < 0:
                break
            m = member[at]
            told = 0 <= narrow[k, ATTEMPT] < narrow[m, ATTEMPT]
            loose = narrow[k, END_IS] == END_IS_LOOSE
            after = loose or wide[m, START] >= wide[k, END] - SEQUENCE_SLACK_NS
            if told or (after and (failed(narrow, k) or narrow[k, ROLE] == SERVER)):
                delivered = wide[k, FIRST] > 0 or 0 < served_ns < wide[k, END]
                if delivered and not loose:
                    wait_begin_ns[waits] = wide[k, END]
                else:
                    wait_begin_ns[waits] = wide[k, START]
                    lost[k] = 1
                wait_end_ns[waits] = wide[m, START]
                attempts += 1
                waits += 1
                break
            elif after and _calls_again(narrow, parent, k):
                stay = _stay_end(narrow, parent, member, count, end, k)
                other = _stay_end(narrow, parent, member, count, end, m)
                attempts += 1
                if stay > start[m] + SEQUENCE_SLACK_NS:
                    hedged = True
                    lost[m if failed(narrow, m) or other < stay else k] = 1
                else:
                    lost[k] = 1
                    wait_begin_ns[waits] = wide[k, START]
                    wait_end_ns[waits] = wide[m, START]
                    waits += 1
            elif not after and _same_call(wide, k, m) and failed(narrow, m) != failed(narrow, k):
                lost_try = m if failed(narrow, m) else k
                lost[lost_try] = 1
                wait_begin_ns[waits] = wide[lost_try, START]
                wait_end_ns[waits] = wide[lost_try, END]
                attempts += 1
                waits += 1
            elif not after and _could_be_hedge(narrow, k, m):
                hedged = True
                k_wins = not failed(narrow, k) and (
                    failed(narrow, m) or wide[k, END] <= wide[m, END]
                )
                lost[m if k_wins else k] = 1
                attempts += 1
            else:
                break
            if not lost[m]:
                break
    if attempts > 1:
        _lose_descendants(parent, member, count, lost)
    return max(attempts, _sends(narrow, member, count)), waits, hedged


@inlined
def _calls_again(narrow: N, parent: W, k: Int) -> bool:
    """Whether call `k` was answered well and its caller still asked anew, in the same LLM call.

    A span that ends at the response's headers can't say what came after them: a first token
    that was waited for too long, or one that a second try beside it brought sooner.
    """
    above = parent[k]
    return bool(
        above >= 0
        and narrow[k, ROLE] == EDGE
        and narrow[k, END_IS] == END_IS_HEADERS
        and narrow[above, ROLE] == CALL
    )


@inlined
def _sends(narrow: N, member: W, count: Int) -> Int:
    """How often a gateway says it sent the request on, where one span stands for many tries."""
    sends = 0
    for i in range(count):
        if narrow[member[i], ROLE] == INNER and narrow[member[i], HOP] == RETRY:
            sends += 1
    return sends


@inlined
def _same_call(wide: W, k: Int, m: Int) -> bool:
    """Whether a gateway names both by the id of one call, so that one try is inside the other."""
    return wide[k, PEER] != 0 and wide[k, PEER] == wide[m, PEER]


@inlined
def _could_be_hedge(narrow: N, k: Int, m: Int) -> bool:
    if narrow[k, END_IS] == END_IS_LOOSE or narrow[m, END_IS] == END_IS_LOOSE:
        return False
    if narrow[k, ATTEMPT] >= 0 and narrow[k, ATTEMPT] == narrow[m, ATTEMPT]:
        return False
    if narrow[k, ROLE] == EDGE:
        return True
    return bool(
        narrow[k, REPLICA] != narrow[m, REPLICA] or narrow[k, SERVICE] != narrow[m, SERVICE]
    )


@inlined
def _lose_descendants(parent: W, member: W, count: Int, lost: NDArray[np.int8]) -> None:
    for i in range(count):
        k = member[i]
        above = parent[k]
        steps = 0
        while above >= 0 and steps < 64:
            if lost[above]:
                lost[k] = 1
                break
            above = parent[above]
            steps += 1
