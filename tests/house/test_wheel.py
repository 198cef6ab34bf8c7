"""What a user installs is what lies in the seven folders: no more and no less."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Protocol


class House(Protocol):
    root: Path
    folders: tuple[str, ...]

    def tracked(self, *patterns: str) -> list[Path]: ...


def test_the_wheel_built_from_the_sdist_holds_every_file(house: House, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, house.root],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = {n for n in zipfile.ZipFile(wheel).namelist() if n.startswith("tailburn/")}
    wanted = {f"tailburn/{path.relative_to(house.root)}" for path in house.tracked(*house.folders)}
    assert names == wanted
