"""Rows made here, as the log keeps them: an Arrow stream, so that a start reads the same."""

import pyarrow as pa

from tailburn.collector.errors import BadBody
from tailburn.engine.schema import SIGNALS


def packed(rows: pa.Table) -> bytearray:
    """Rows of engine.schema.SIGNALS as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytearray(memoryview(sink.getvalue()))


def unpacked(body: bytes | bytearray) -> pa.Table:
    """The rows again. Raises BadBody where this version has no such rows."""
    try:
        return pa.ipc.open_stream(pa.py_buffer(bytes(body))).read_all().cast(SIGNALS)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadBody(f"body is no stream of signals: {error}") from error
