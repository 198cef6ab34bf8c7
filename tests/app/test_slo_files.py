"""Files and folders of SLOs on disk, bad ones included."""

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tailburn.app.errors import UserError
from tailburn.app.slo_files import (
    SIZE_LIMIT_BYTES,
    check_slos,
    load_slos,
    read_texts,
    write_documents,
    write_whole,
)
from tailburn.engine.slo.parse import parse
from tests.engine.slo.texts import CHAT, slo_text


def lines(*paths: Path) -> list[str]:
    with pytest.raises(UserError) as raised:
        load_slos(paths)
    return list(raised.value.lines)


def test_a_folder_is_read_at_any_depth_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "c.json", "d.yaml.bak"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(slo_text("availability: 99%", file.stem))
    assert [slo.name for slo in load_slos([tmp_path])] == ["z", "b"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(CHAT)
    assert len(load_slos([file, file, tmp_path])) == 1


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CHAT.encode())))
    (slo,) = load_slos([Path("-")])
    assert str(slo.place) == "standard input:3"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + CHAT.encode())
    assert load_slos([file])[0].name == "chat"


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(slo_text("availability: 0.9"))
    (tmp_path / "b.yaml").write_bytes(b"a: 1\nb: \xff\n")
    (tmp_path / "c.yaml").write_text("a:\n\t- 1\n")
    told = lines(tmp_path, tmp_path / "none.yaml")
    assert [line.removeprefix(str(tmp_path)).split(": ")[0] for line in told] == [
        "/b.yaml:2",
        "/none.yaml:1",
        "/a.yaml:5",
        "/c.yaml:2",
    ]
    assert "byte 0xff is no UTF-8; save it as UTF-8" in told[0]


def test_a_folder_without_files_is_told(tmp_path: Path) -> None:
    assert lines(tmp_path) == [
        f"{tmp_path}:1: file: can't be read: no file in it ends in .yaml or .yml"
    ]


def test_a_file_that_is_too_large_is_told_and_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    with file.open("wb") as stream:
        stream.truncate(SIZE_LIMIT_BYTES + 1)
    assert "larger than 16 MiB; split it into several" in lines(file)[0]


def test_no_text_of_a_file_can_act_on_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text('"\\e]0;owned\\a": 1\n')
    assert all(line.isprintable() for line in lines(file))


@pytest.mark.long
def test_ten_thousand_slos_are_read_from_a_folder(tmp_path: Path) -> None:
    for i in range(100):
        documents = (slo_text("availability: 99%", f"s{i}-{j}") for j in range(100))
        (tmp_path / f"{i:03}.yaml").write_text("---\n".join(documents))
    assert len(load_slos([tmp_path])) == 10_000


def test_a_fault_in_one_of_many_files_leaves_no_slo_to_use(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CHAT)
    (tmp_path / "b.yaml").write_text(slo_text("availability: 0.9", "b"))
    with pytest.raises(UserError):
        load_slos([tmp_path])


def test_documents_become_a_file_each_with_the_schema_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    documents = [(name, slo_text("availability: 99%", name)) for name in "ab"]
    assert write_documents(folder, documents) == (folder / "a.yaml", folder / "b.yaml")
    assert sorted(p.name for p in folder.iterdir()) == [
        "a.yaml",
        "b.yaml",
        "serving-slo.schema.json",
    ]
    assert [slo.name for slo in load_slos([folder])] == ["a", "b"]


def test_documents_become_one_file(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    write_documents(file, [(name, slo_text("availability: 99%", name)) for name in "ab"])
    assert file.read_text().startswith("# yaml-language-server: $schema=serving-slo.schema.json\n")
    assert [slo.name for slo in load_slos([file])] == ["a", "b"]


def test_nothing_is_written_where_one_file_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("mine")
    documents = [(name, slo_text("availability: 99%", name)) for name in "ab"]
    with pytest.raises(UserError, match="is there already; --force replaces it"):
        write_documents(tmp_path, documents)
    assert [p.name for p in tmp_path.iterdir()] == ["b.yaml"]
    write_documents(tmp_path, documents, replace=True)
    assert len(load_slos([tmp_path])) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="can't be written: Permission denied"):
        write_whole(tmp_path / "a.yaml", "text")


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    with pytest.raises(UserError, match=r"a\.yaml: can't be written"):
        write_whole(tmp_path / "a.yaml", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["a.yaml"]


words = st.sampled_from(
    ["a", "spec", "kind", ": ", "- ", "\n", "  ", "\t", "[", "]", "{", "}", "&a ", "*a", "!!x ",
     "'", '"', "|\n", "? ", "---\n", "...\n", "%YAML 1.2\n", "#", "<<: ", "~", "\\x", "\\UFFFFFFFF",
     "\x00", "\x85", "\ufeff", "é", "0", ".nan", "@", "`", ","]
)  # fmt: skip


@given(st.lists(words, max_size=30).map("".join))
@example('"\\uD800"')
@example(CHAT.replace("{", "["))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_makes_anything_but_problems(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    slos, problems = check_slos([file])
    assert bool(slos) != bool(problems)
    assert all(p.line >= 1 and p.file == str(file) for p in problems)


@given(st.integers(0, len(CHAT) - 1), st.sampled_from(list("\t{}[]:-#&*!|>'\"%@,\n 0a")))
def test_no_slip_of_the_pen_makes_anything_but_problems(at: int, letter: str) -> None:
    parsed = parse([("f", CHAT[:at] + letter + CHAT[at + 1 :])])
    assert bool(parsed.slos) != bool(parsed.problems)


def test_files_are_told_by_the_names_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(CHAT)
    monkeypatch.chdir(tmp_path)
    assert read_texts([Path("a.yaml")])[0][0][0] == "a.yaml"
