"""DuckDB in memory over a list of segments.

Values only ever enter as bound parameters; names are checked against the schema before they
get here. Connections can read the store's folder and nothing else.
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

Files = Sequence[Path]

_LATEST: Final = """
    SELECT {columns} FROM {versions} AS r LEFT JOIN (
        SELECT request_id AS newer_id, max(version) AS newest
        FROM {later} WHERE version > 1 GROUP BY request_id
    ) ON request_id = newer_id
    WHERE NOT tombstone AND (newest IS NULL OR version >= newest)
"""
_SPANS: Final = """
    SELECT *, lower(hex(trace_id)) AS trace_id_hex, lower(hex(span_id)) AS span_id_hex,
        lower(hex(parent_span_id)) AS parent_span_id_hex
    FROM {files}
"""


class Engine:
    """One DuckDB in memory, shared by all threads, opened at first use."""

    def __init__(self, root: Path, memory_bytes: int, threads: int) -> None:
        self._root = root
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None

    def run(
        self, sql: str, parameters: Sequence[object], views: Mapping[str, str] | None = None
    ) -> pa.Table:
        """The rows of one statement; `views` maps names to the SELECT behind each.

        Raises `BadQuery` for SQL that is wrong and `UnreadableFile` where a file is.
        """
        import duckdb

        cursor = self._cursor()
        try:
            for name, select in (views or {}).items():
                cursor.execute(f"CREATE TEMP VIEW {name} AS {select}")
            return cursor.sql(sql, params=list(parameters)).to_arrow_table()
        except (duckdb.IOException, duckdb.HTTPException) as error:
            raise UnreadableFile(str(error)) from error
        except (duckdb.InternalException, duckdb.FatalException) as error:
            self._forget()
            raise UnreadableFile(str(error)) from error
        except (duckdb.InvalidInputException, duckdb.SerializationException) as error:
            raise UnreadableFile(str(error)) from error
        except duckdb.Error as error:
            raise BadQuery(str(error)) from error
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

        spill = self._root / "tmp" / "duckdb"
        database = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": f"{self._memory_bytes}B",
                "temp_directory": str(spill),
                "threads": self._threads,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "preserve_insertion_order": "false",
            },
        )
        allowed = [str(self._root / table) + "/" for table in TABLES] + [str(spill) + "/"]
        database.execute(f"SET allowed_directories = [{', '.join(map(quote, allowed))}]")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        return database

    def _forget(self) -> None:
        with self._lock:
            self._database = None


def quote(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted SQL name."""
    return '"' + name.replace('"', '""') + '"'


def scan(table: str, files: Files, filename: bool = False) -> str:
    """What stands after FROM to read `files` as `table`, whatever is in them."""
    if not files:
        nothing = ", ".join(
            f"CAST(NULL AS {_sql_type(f.type)}) AS {identifier(f.name)}" for f in TABLES[table]
        )
        named = ", '' AS filename" if filename else ""
        return f"(SELECT {nothing}{named} WHERE false)"
    listed = ", ".join(quote(str(f)) for f in files)
    named = ", filename = true" if filename else ""
    return f"read_parquet([{listed}], union_by_name = true{named})"


def latest_requests(files: Files, later: Files, columns: str = "r.*") -> str:
    """SELECT of the newest versions among `files`; `later` may hold newer ones."""
    return _LATEST.format(
        columns=columns, versions=scan("requests", files), later=scan("requests", later)
    )


def views(files: Mapping[str, Files], later_requests: Files) -> dict[str, str]:
    """The SELECT behind each view that users query."""
    return {
        "requests": latest_requests(files["requests"], later_requests),
        "request_versions": f"SELECT * FROM {scan('requests', files['requests'])}",
        "spans": _SPANS.format(files=scan("spans", files["spans"])),
        "rollups": f"SELECT * FROM {scan('rollups', files['rollups'])}",
        "signals": f"SELECT * FROM {scan('signals', files['signals'])}",
    }


def equalities(where: Mapping[str, str]) -> tuple[list[str], list[object]]:
    """Conditions and their parameters; the names must have been checked.

    A dimension that is null equals `unknown`.
    """
    conditions = []
    for name in where:
        column = f"CAST({identifier(name)} AS VARCHAR)"
        known = f"coalesce({column}, {quote(UNKNOWN)})" if name in DIMENSIONS else column
        conditions.append(f"{known} = ?")
    return conditions, list(where.values())


def _sql_type(arrow: pa.DataType) -> str:
    if pa.types.is_dictionary(arrow):
        return _sql_type(arrow.value_type)
    if pa.types.is_map(arrow):
        return f"MAP({_sql_type(arrow.key_type)}, {_sql_type(arrow.item_type)})"
    if pa.types.is_list(arrow):
        return f"{_sql_type(arrow.value_type)}[]"
    if pa.types.is_struct(arrow):
        inner = ", ".join(f"{identifier(f.name)} {_sql_type(f.type)}" for f in arrow)
        return f"STRUCT({inner})"
    if pa.types.is_fixed_size_binary(arrow):
        return "BLOB"
    return _SCALARS[str(arrow)]


_SCALARS: Final = {
    "string": "VARCHAR",
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
}
