"""Events to come: a binary heap of (when, what), both int64.

`what` holds the event's kind, the attempt's life and step and its slot, so that events of
one instant have an order that does not depend on who was put in first.
"""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import layout as w


@lean
def push(heap: Any, vary: Any, when: Any, what: Any) -> None:
    """Put an event in; there must be room (`SPARE_HEAP`)."""
    at = vary[w.HEAP_SIZE]
    vary[w.HEAP_SIZE] = at + 1
    while at > 0:
        up = (at - 1) >> 1
        if heap[up, 0] < when or (heap[up, 0] == when and heap[up, 1] <= what):
            break
        heap[at, 0], heap[at, 1] = heap[up, 0], heap[up, 1]
        at = up
    heap[at, 0], heap[at, 1] = when, what


@lean
def drop_first(heap: Any, vary: Any) -> None:
    """Take the first event out (read it before, at [0])."""
    size = vary[w.HEAP_SIZE] - 1
    vary[w.HEAP_SIZE] = size
    when, what = heap[size, 0], heap[size, 1]
    at = 0
    while True:
        low = 2 * at + 1
        if low >= size:
            break
        other = low + 1
        if other < size and (
            heap[other, 0] < heap[low, 0]
            or (heap[other, 0] == heap[low, 0] and heap[other, 1] < heap[low, 1])
        ):
            low = other
        if when < heap[low, 0] or (when == heap[low, 0] and what <= heap[low, 1]):
            break
        heap[at, 0], heap[at, 1] = heap[low, 0], heap[low, 1]
        at = low
    heap[at, 0], heap[at, 1] = when, what
