"""DuckDB in memory over segments that Arrow reads, each page's checksum verified.

Values only ever enter as bound parameters; names are checked against the schema before they
get here. DuckDB itself opens no file: it sees the tables it is handed and its spill folder.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tailburn.engine.names import DIMENSIONS, UNKNOWN
from tailburn.engine.schema import TABLES
from tailburn.engine.store.api import BadQuery, UnreadableFile

if TYPE_CHECKING:
    import duckdb

Tables = Mapping[str, Sequence[Path]]
"""The segments behind each table, the newer requests among them as `LATER`."""

LATER: Final = "later"
_SOURCE: Final = {table: f"{table}_files" for table in (*TABLES, LATER)}
LATEST_REQUESTS: Final = f"""
    SELECT r.* FROM {_SOURCE["requests"]} AS r LEFT JOIN (
        SELECT request_id AS newer_id, max(version) AS newest
        FROM {_SOURCE[LATER]} WHERE version > 1 GROUP BY request_id
    ) ON request_id = newer_id
    WHERE NOT tombstone AND (newest IS NULL OR version >= newest)
"""
VIEWS: Final = {
    "requests": LATEST_REQUESTS,
    "request_versions": f"SELECT * FROM {_SOURCE['requests']}",
    "spans": f"""
        SELECT *, lower(hex(trace_id)) AS trace_id_hex, lower(hex(span_id)) AS span_id_hex,
            lower(hex(parent_span_id)) AS parent_span_id_hex
        FROM {_SOURCE["spans"]}
    """,
    "rollups": f"SELECT * FROM {_SOURCE['rollups']}",
    "signals": f"SELECT * FROM {_SOURCE['signals']}",
    "verdicts": f"SELECT * FROM {_SOURCE['verdicts']}",
    "excess": f"SELECT * FROM {_SOURCE['excess']}",
    "usual": f"SELECT * FROM {_SOURCE['usual']}",
}


class Engine:
    """One DuckDB in memory, shared by all threads, opened at first use."""

    def __init__(self, root: Path, memory_bytes: int, threads: int) -> None:
        self._spill = root / "tmp" / "duckdb"
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None

    def run(self, sql: str, parameters: Sequence[object], views: Sequence[str], on: Tables) -> Any:
        """The rows of one SELECT over some of `VIEWS`, whose segments are `on`.

        Raises `BadQuery` for SQL that is wrong and `UnreadableFile` where a file is.
        """
        import duckdb

        cursor = self._cursor()
        try:
            for table, paths in on.items():
                cursor.register(_SOURCE[table], _dataset(table, paths))
            for view in views:
                cursor.execute(f"CREATE TEMP VIEW {view} AS {VIEWS[view]}")
            return cursor.sql(sql, params=list(parameters)).to_arrow_table()
        except _wrong_sql() as error:
            raise BadQuery(str(error)) from error
        except (duckdb.InternalException, duckdb.FatalException) as error:
            self._forget()
            raise UnreadableFile(str(error)) from error
        except (duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableFile(str(error)) from error
        finally:
            cursor.close()

    def check_reads_only(self, sql: str) -> None:
        """Raise `BadQuery` unless `sql` is exactly one SELECT."""
        import duckdb

        cursor = self._cursor()
        try:
            kinds = [s.type for s in cursor.extract_statements(sql)]
        except duckdb.Error as error:
            raise BadQuery(str(error)) from error
        finally:
            cursor.close()
        if kinds != [duckdb.StatementType.SELECT]:
            raise BadQuery("want exactly one SELECT statement")

    def _cursor(self) -> Any:
        with self._lock:
            if self._database is None:
                self._database = self._open()
            return self._database.cursor()

    def _open(self) -> Any:
        import duckdb

        database = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": f"{self._memory_bytes}B",
                "temp_directory": str(self._spill),
                "threads": self._threads,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
                "preserve_insertion_order": "false",
            },
        )
        database.execute(f"SET allowed_directories = [{_quote(f'{self._spill}/')}]")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        return database

    def _forget(self) -> None:
        with self._lock:
            self._database = None


def identifier(name: str) -> str:
    """A quoted SQL name."""
    return '"' + name.replace('"', '""') + '"'


def equalities(where: Mapping[str, str]) -> tuple[list[str], list[object]]:
    """Conditions and their parameters; the names must have been checked.

    A dimension that is null equals `unknown`.
    """
    conditions = []
    for name in where:
        column = f"CAST({identifier(name)} AS VARCHAR)"
        known = f"coalesce({column}, {_quote(UNKNOWN)})" if name in DIMENSIONS else column
        conditions.append(f"{known} = ?")
    return conditions, list(where.values())


def _dataset(table: str, paths: Sequence[Path]) -> Any:
    import pyarrow.dataset as ds  # brings pandas with it: half a second of a start

    schema = TABLES["requests" if table == LATER else table]
    if not paths:
        return schema.empty_table()
    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    return ds.dataset([str(p) for p in paths], schema=schema, format=parquet)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _wrong_sql() -> tuple[type[Exception], ...]:
    """What DuckDB raises where the statement is to blame, not a file."""
    import duckdb

    return (
        duckdb.ParserException,
        duckdb.BinderException,
        duckdb.CatalogException,
        duckdb.PermissionException,
        duckdb.ConversionException,
        duckdb.OutOfRangeException,
        duckdb.TypeMismatchException,
        duckdb.NotImplementedException,
        duckdb.OutOfMemoryException,
    )
