"""Which folders are stores, and which are somebody else's."""

from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tailburn.app.errors import UserError
from tailburn.app.opening import is_store, refuse_foreign, stores_below
from tailburn.app.terminal.output import draw


def test_a_store_is_known_by_what_a_service_leaves_there(tmp_path: Path) -> None:
    store = tmp_path / "demo"
    (store / "log").mkdir(parents=True)
    assert is_store(store)
    assert not is_store(tmp_path)
    assert not is_store(tmp_path / "missing")
    assert stores_below(tmp_path) == [store]
    assert stores_below(tmp_path / "missing") == [store]


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    refuse_foreign(tmp_path)
    refuse_foreign(tmp_path / "missing")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="name an empty folder"):
        refuse_foreign(tmp_path)
    (tmp_path / "log").mkdir()
    refuse_foreign(tmp_path)


def test_a_table_is_whole_in_a_narrow_terminal() -> None:
    table = Table()
    for name in ("clock", "p50", "trace id"):
        table.add_column(name)
    table.add_row("ttft_client_s", "699 ms", "0123456789abcdef" * 2)
    console = Console(width=20, record=True, force_terminal=False)
    draw(table, console)
    text = console.export_text()
    for whole in ("ttft_client_s", "699 ms", "0123456789abcdef" * 2):
        assert whole in text
