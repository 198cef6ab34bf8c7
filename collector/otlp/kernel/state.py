"""What compiled code knows of a decoder: one record, handed on by reference."""

from typing import Any, Final

import numpy as np

from tailburn.collector.otlp.kernel.buffers import FIELDS
from tailburn.collector.otlp.kernel.memory import compiled, reference

OK: Final = 0
FULL: Final = -3  # a group of the open batch has no room: `full` says which

KEY: Final = np.dtype(
    [
        ("class_", np.int32),  # as the name of an attribute; 0: not seen as one yet
        ("span", np.int16),  # place among the wanted attributes of spans, + 1
        ("event", np.int16),
        ("stamp", np.int64),  # of the span that had it last
        ("length", np.int32),
        ("is_name", np.int32),  # 1: seen as the name of a span, scope or event, and fit for it
        ("start", np.int64),  # address of the text
        ("lasting", np.uint64),  # hash of the text
        ("unused", np.int64, 3),
    ]
)
"""What is known of a code of the dictionary: one line of the cache."""

GUESSES: Final = 4096
"""Codes by the name of a span and the place among its attributes: most spans repeat the last
one of their name, and comparing a key with the guess is cheaper than looking it up."""

REJECTS: Final = 1024
"""Rows of (resource, reason, count): what is over them is counted under resource 0."""

# Reasons to reject a span.
BAD_TRACE_ID: Final = 0
BAD_SPAN_ID: Final = 1
BAD_PARENT_ID: Final = 2

RECORD: Final = np.dtype(
    [
        *FIELDS,
        ("full", np.int64),
        ("at", np.int64),  # the field being read, for error messages
        ("readable", np.int64),  # end of the body
        # Memory
        ("dictionary", np.int64),
        ("resources", np.int64),
        ("names", np.int64),
        ("words", np.int64),
        ("keys", np.int64),
        ("guesses", np.int64),
        ("wants", np.int64),  # a byte of `Want` per wanted attribute
        ("rejects", np.int64),
        ("scratch", np.int64),
        ("pad", np.int64),
        ("base64", np.int64),
        ("frames", np.int64),
        ("form", np.int64),
        ("scratch_used", np.int64),
        ("scratch_full", np.int64),
        # Limits
        ("max_attributes", np.int64),
        ("max_events", np.int64),
        ("value_bytes", np.int64),
        ("unlisted_bytes", np.int64),
        ("name_bytes", np.int64),
        ("event_name_bytes", np.int64),
        ("nesting", np.int64),
        # Where we are
        ("stamp", np.int64),  # of the span, never reused
        ("span_index", np.int64),  # in the body
        ("guess", np.int64),
        ("received", np.int64),
        ("tenant", np.int64),
        ("resource_code", np.int64),
        ("resource_hash", np.uint64),
        ("scope_code", np.int64),
        ("scope_hash", np.uint64),
        ("name_hash", np.uint64),
        ("attribute_sum", np.uint64),
        ("event_sum", np.uint64),
        ("attributes", np.int64),
        ("weight", np.float64),
        ("sample_rate", np.float64),
        # What was not taken
        ("rejected", np.int64),
        ("reject_rows", np.int64),
        ("first_index", np.int64),
        ("first_reason", np.int64),
        ("first_length", np.int64),
        ("dropped_attributes", np.int64),
        ("dropped_events", np.int64),
        ("cut_values", np.int64),
    ],
    align=True,
)

state_at = reference(RECORD)
_key_at = reference(KEY)
_KEY_BYTES: Final = KEY.itemsize


@compiled
def key_of(state: int, code: int) -> Any:
    """What is known of a code."""
    c = state_at(state)
    return _key_at(c.keys + code * _KEY_BYTES)
