"""Files and folders of SLOs, read from disk and standard input; what is written, written whole."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final, Literal

from tailburn.app.errors import UserError
from tailburn.app.terminal.text import harmless
from tailburn.engine.problems import Problem
from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.parse import parse
from tailburn.engine.slo.schema import MODELINE, SCHEMA_FILE, json_schema

SUFFIXES: Final = (".yaml", ".yml")
SIZE_LIMIT_BYTES: Final = 16 * 1024 * 1024
STDIN_NAME: Final = "standard input"

Source = Path | Literal["-"]


def load_slos(paths: Sequence[Source]) -> tuple[Slo, ...]:
    """The SLOs of files, folders (their *.yaml and *.yml, at any depth) and `-`, standard input.

    Raises UserError with every problem of all of them, one a line.
    """
    slos, problems = check_slos(paths)
    if problems:
        raise UserError(*map(told, problems))
    return slos


def load_given(*paths: Sequence[Path] | None) -> tuple[Slo, ...]:
    """As `load_slos`, of all that was named on the command line, one way or the other."""
    named = [path for some in paths for path in some or ()]
    if not named:
        raise UserError("no SLOs: name files or folders of them, or - for standard input")
    return load_slos(named)


def told(problem: Problem) -> str:
    """A problem as one line that no text of the file can act through on a terminal."""
    return harmless(str(problem))


def check_slos(paths: Sequence[Source]) -> tuple[tuple[Slo, ...], tuple[Problem, ...]]:
    """The sound SLOs, and every problem of the others; of no use where there is a problem."""
    texts, problems = read_texts(paths)
    parsed = parse(texts)
    return parsed.slos, (*problems, *parsed.problems)


def read_texts(paths: Sequence[Source]) -> tuple[list[tuple[str, str]], list[Problem]]:
    """Name and text of every file, each once, folders in the order of their names."""
    texts: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for file in dict.fromkeys(file for path in paths for file in _files(path, problems)):
        text = _text(file, problems)
        if text is not None:
            texts.append((STDIN_NAME if file == "-" else str(file), text))
    return texts, problems


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part.

    One that is there keeps its owner and its rights. Raises UserError where it can't be written.
    """
    file = path.resolve()  # a link stays one
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            if file.exists():
                _make_alike(temporary, file.stat())
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path}: can't be written: {error.strerror}") from error


def _make_alike(new: Path, old: os.stat_result) -> None:
    """Make an empty file that no more may read than may read the old one."""
    new.touch(mode=0o600)
    with suppress(PermissionError):  # only root gives files away
        os.chown(new, old.st_uid, old.st_gid)
    new.chmod(S_IMODE(old.st_mode))


def write_documents(
    target: Source, documents: Sequence[tuple[str, str]], *, replace: bool = False
) -> tuple[Path, ...]:
    """Write documents, each (name, text), to standard output, one file, or a folder of files.

    A target that ends in .yaml or .yml is a file, any other a folder, in which each document is
    a file of its name. The JSON Schema goes beside them. Raises UserError, with nothing
    written, where a file is there already and `replace` isn't set.
    """
    if target == "-" or str(target) == "-":
        sys.stdout.write(f"{MODELINE}\n" + "---\n".join(text for _, text in documents))
        return ()
    assert isinstance(target, Path)
    if target.suffix in SUFFIXES:
        files = {target: "---\n".join(text for _, text in documents)}
        folder = target.parent
    else:
        files = {target / f"{name}.yaml": text for name, text in documents}
        folder = target
    there = [path for path in files if path.exists()]
    if there and not replace:
        raise UserError(*(f"{path}: is there already; --force replaces it" for path in there))
    for path, text in files.items():
        write_whole(path, f"{MODELINE}\n{text}")
    write_whole(folder / SCHEMA_FILE, schema_text())
    return tuple(files)


def schema_text() -> str:
    """The JSON Schema of a file of SLOs."""
    return json.dumps(json_schema(), indent=2) + "\n"


def _files(path: Source, problems: list[Problem]) -> Iterator[Source]:
    if path == "-" or str(path) == "-":
        yield "-"
        return
    assert isinstance(path, Path)
    if not path.is_dir():
        yield path
        return
    found = sorted(x for x in path.rglob("*") if x.suffix in SUFFIXES and x.is_file())
    if not found:
        problems.append(_unreadable(str(path), "no file in it ends in .yaml or .yml"))
    yield from found


def _text(file: Source, problems: list[Problem]) -> str | None:
    name = STDIN_NAME if file == "-" else str(file)
    try:
        content = _bytes(file)
    except OSError as error:
        problems.append(_unreadable(name, error.strerror or str(error)))
        return None
    if len(content) > SIZE_LIMIT_BYTES:
        told = f"it is larger than {SIZE_LIMIT_BYTES // 1024**2} MiB; split it into several"
        problems.append(_unreadable(name, told))
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wanted = f"can't be read: byte {content[error.start]:#04x} is no UTF-8; save it as UTF-8"
        problems.append(Problem(name, line, "file", "", wanted))
        return None


def _bytes(file: Source) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(SIZE_LIMIT_BYTES + 1)
    assert isinstance(file, Path)
    with file.open("rb") as stream:
        return stream.read(SIZE_LIMIT_BYTES + 1)


def _unreadable(name: str, why: str) -> Problem:
    return Problem(name, 1, "file", "", f"can't be read: {why}")
