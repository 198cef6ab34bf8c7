"""The Parquet store: what every store must do, and what only files can go through."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailburn.engine.store import Keeping, Store
from tailburn.engine.store.parquet import ParquetStore
from tests.engine.store.conformance import Open, StoreConformance


class TestParquetStore(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[Open]:
        def open_it(keeping: Keeping) -> Store:
            return ParquetStore(tmp_path / "store", keeping)

        yield open_it
