"""What compiled code knows of a decoder: one record, handed on by reference."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.buffers import FIELDS
from tailburn.collector.otlp.memory import REVISION

OK: Final = 0
FULL: Final = -3  # a group of the open batch has no room: `full` says which

KEY_BYTES: Final = 16
"""Per code of the dictionary: class (4 bytes), wanted of span and event + 1 (2, 2), stamp (8)."""

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
        ("keys", np.int64),
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
        REVISION,
    ],
    align=True,
)
