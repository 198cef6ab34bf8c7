"""The write-ahead log: a body is in it, durably, before it is acknowledged."""

from tailburn.collector.log.disk import Disk
from tailburn.collector.log.lock import StoreInUse, StoreLock, lock_store
from tailburn.collector.log.opening import Opened, open_log
from tailburn.collector.log.reader import LogReader
from tailburn.collector.log.records import Codec, Entry, Kind, Record
from tailburn.collector.log.scan import Fault
from tailburn.collector.log.writer import Bounds, LogWriter

__all__ = [
    "Bounds",
    "Codec",
    "Disk",
    "Entry",
    "Fault",
    "Kind",
    "LogReader",
    "LogWriter",
    "Opened",
    "Record",
    "StoreInUse",
    "StoreLock",
    "lock_store",
    "open_log",
]
