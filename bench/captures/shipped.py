"""The captures that travel with the tests, one compressed file each."""

import tarfile
from pathlib import Path

DATA = Path(__file__).parents[2] / "tests/captures/data"


def unpack(folder: Path) -> Path:
    """Unpacks every shipped capture below `folder`, laid out as they were recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    for archive in sorted(DATA.glob("*.tar.xz")):
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return folder
