"""What the tests of the house read: the tracked files, and the source as syntax trees."""

import ast
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("collector", "engine", "rules", "alerts", "dashboards", "lab", "app")


@dataclass(frozen=True)
class Import:
    """One imported module of one file; `level` counts the dots of a relative import."""

    file: str
    line: int
    module: str
    level: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {'.' * self.level}{self.module}"


@dataclass(frozen=True)
class House:
    root: Path
    folders: tuple[str, ...]

    def tracked(self, *patterns: str) -> list[Path]:
        """Files in the repository or about to be (not ignored), matching git path patterns."""
        listing = subprocess.run(
            [
                "git",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
                "--",
                *patterns,
            ],
            cwd=self.root,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        paths = (self.root / name for name in sorted(listing.split("\0")) if name)
        return [path for path in paths if path.is_file() and not path.is_symlink()]

    def sources(self, folder: str) -> list[Path]:
        return self.tracked(f"{folder}/*.py")

    def imports(self, folder: str) -> list[Import]:
        """Every import in a folder, also those inside functions; `from m import x` as `m.x`."""
        found = []
        for path in self.sources(folder):
            name = str(path.relative_to(self.root))
            for node in ast.walk(ast.parse(path.read_bytes(), name)):
                if isinstance(node, ast.Import):
                    found += [Import(name, node.lineno, a.name, 0) for a in node.names]
                elif isinstance(node, ast.ImportFrom):
                    module = f"{node.module}." if node.module else ""
                    found += [
                        Import(name, node.lineno, module + a.name, node.level) for a in node.names
                    ]
        return found


@pytest.fixture(scope="session")
def house() -> House:
    return House(ROOT, FOLDERS)
