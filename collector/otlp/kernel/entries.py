"""What Python calls of the compiled code, but for `scan`."""

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tailburn.collector.otlp.kernel.attributes import learn_key
from tailburn.collector.otlp.kernel.ids import normal_id_hash
from tailburn.collector.otlp.kernel.memory import address_of, entry
from tailburn.collector.otlp.kernel.names import LONG, class_of_name
from tailburn.collector.otlp.kernel.state import state_at
from tailburn.collector.otlp.kernel.strays import resource, stray_attribute
from tailburn.collector.otlp.kernel.table import Table, intern
from tailburn.collector.otlp.kernel.workspace import Workspace
from tailburn.collector.otlp.limits import DEFAULT

_CLEANING = threading.Lock()  # the workspace of clean_attribute is one for all threads
_CLEANER = Workspace(DEFAULT, Table(1, 1, 1), Table(1, 1, 1))


@entry
def _enter(state: int, message: NDArray[np.uint8]) -> int:
    c = state_at(state)
    p = np.int64(message.ctypes.data)
    c.readable = p + len(message)
    status = resource(state, p, c.readable)
    return status if status < 0 else c.resource_code


@entry
def _learn(state: int, name: NDArray[np.uint8], code: int) -> None:
    c = state_at(state)
    p = np.int64(name.ctypes.data)
    class_ = class_of_name(c.names, p, p + len(name)) | LONG
    learn_key(state, code, class_)


@entry
def _intern(table: int, text: NDArray[np.uint8]) -> int:
    p = np.int64(text.ctypes.data)
    return intern(table, p, p + len(text))


@entry
def _hash(text: NDArray[np.uint8]) -> np.uint64:
    p = np.int64(text.ctypes.data)
    return normal_id_hash(p, p + len(text))


@entry
def _clean(state: int, attribute: NDArray[np.uint8]) -> int:
    c = state_at(state)
    p = np.int64(attribute.ctypes.data)
    c.readable = p + len(attribute)
    status, _ = stray_attribute(state, p, c.readable)
    return status


def _array(text: str | bytes) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(text.encode() if isinstance(text, str) else text), np.uint8)


def enter_resources(resources: Table, messages: Iterable[bytes]) -> list[int]:
    """The codes of Resource messages, new or known; 0 where there is no room."""
    workspace = Workspace(DEFAULT, Table(1, 1, 1), resources)
    return [int(_enter(workspace.address, _array(message))) for message in messages]


def learn_wanted_key(workspace: Workspace, code: int, key: str) -> None:
    """Keep long strings of this key of the dictionary, unless its name is to be blanked."""
    _learn(workspace.address, _array(key), code)


def intern_text(table: Table, text: str) -> int:
    """The code of a string, new or known; 0 when there is no room."""
    return int(_intern(address_of(table.record), _array(text)))


def hash_id(text: str) -> int:
    """See `ids.id_hash`."""
    return int(_hash(_array(text)))


def clean_attribute(message: bytes) -> bytes:
    """A KeyValue message with users' text blanked; without its value if that nests too deep."""
    array = _array(message)
    with _CLEANING:
        status = _clean(_CLEANER.address, array)
    if status < 0:
        return KeyValue(key=KeyValue.FromString(message).key).SerializeToString()
    return array.tobytes()


def warm_up() -> None:
    """Load what is compiled of this module; at the very first start, compile it."""
    table = Table(2, 64, 64)
    intern_text(table, "x")
    enter_resources(table, [b""])
    learn_wanted_key(Workspace(DEFAULT, table, table), 1, "x")
    clean_attribute(KeyValue(key="x").SerializeToString())
    hash_id("x")
