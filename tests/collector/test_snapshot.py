"""State is kept whole or not at all, and one damaged file is survived."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tailburn.collector.snapshot import KEPT, Snapshot, has_damaged, load_latest, needed_after, save

DTYPES = st.sampled_from([np.int8, np.int32, np.int64, np.uint64, np.float64, np.bool_])
ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    DTYPES.flatmap(lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, min_side=0))),
    max_size=4,
)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.snapshot"))


def save_three(folder: Path) -> None:
    for position in (11, 22, 33):
        save(folder, position, {"a": np.arange(position)}, {"n": position})


def is_of(found: Snapshot | None, position: int) -> bool:
    return (
        found is not None
        and found.position == position
        and found.meta == {"n": position}
        and found.arrays["a"].tolist() == list(range(position))
    )


@given(arrays=ARRAYS, position=st.integers(0, 2**63), name=st.text())
@settings(deadline=None, max_examples=50)
def test_what_was_saved_is_loaded(
    arrays: dict[str, NDArray[Any]],
    position: int,
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("s") / "snapshots"
    meta = {"names": [name, "x"], "nested": {"1": 2.5, "none": None}}

    size = save(folder, position, arrays, meta)
    found = load_latest(folder)

    assert found is not None
    assert (found.position, found.meta) == (position, meta)
    assert list(found.arrays) == list(arrays)
    for key, array in arrays.items():
        assert found.arrays[key].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[key], array)
    assert files(folder)[0].stat().st_size == size


def test_the_arrays_of_a_snapshot_can_be_written_to(tmp_path: Path) -> None:
    save(tmp_path, 1, {"a": np.arange(3)}, {})
    found = load_latest(tmp_path)
    assert found is not None
    found.arrays["a"][0] = 9


def test_the_last_two_are_kept_and_the_log_is_needed_from_the_older(tmp_path: Path) -> None:
    assert needed_after(tmp_path / "none") == 0
    save(tmp_path, 11, {}, {})
    assert needed_after(tmp_path) == 0
    save_three(tmp_path)
    assert len(files(tmp_path)) == KEPT
    assert needed_after(tmp_path) == 22
    assert is_of(load_latest(tmp_path), 33)


@pytest.mark.parametrize("where", [0, 9, 40, -30, -1], ids=str)
def test_a_damaged_snapshot_is_set_aside_for_the_one_before(tmp_path: Path, where: int) -> None:
    save_three(tmp_path)
    data = bytearray(files(tmp_path)[-1].read_bytes())
    data[where] ^= 4
    files(tmp_path)[-1].write_bytes(data)

    assert is_of(load_latest(tmp_path), 22)
    assert has_damaged(tmp_path)
    assert is_of(load_latest(tmp_path), 22)


@given(data=st.data())
@settings(deadline=None, max_examples=50)
def test_a_snapshot_cut_anywhere_is_never_believed(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("snapshots")
    save_three(folder)
    whole = files(folder)[-1].read_bytes()
    files(folder)[-1].write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert is_of(load_latest(folder), 22)


def test_with_all_damaged_there_is_none_and_all_of_the_log_is_needed(tmp_path: Path) -> None:
    save_three(tmp_path)
    for path in files(tmp_path):
        path.write_bytes(b"")
    assert load_latest(tmp_path) is None
    assert needed_after(tmp_path) == 0


def test_a_damaged_one_is_not_counted_among_those_kept(tmp_path: Path) -> None:
    save_three(tmp_path)
    files(tmp_path)[-1].write_bytes(b"")
    load_latest(tmp_path)

    save(tmp_path, 44, {"a": np.arange(44)}, {"n": 44})

    assert needed_after(tmp_path) == 22
    assert is_of(load_latest(tmp_path), 44)


def test_a_write_that_was_interrupted_is_cleared_away(tmp_path: Path) -> None:
    save_three(tmp_path)
    (tmp_path / f"{9:010d}-{44:020d}.tmp").write_bytes(b"half")
    assert is_of(load_latest(tmp_path), 33)
    assert not list(tmp_path.glob("*.tmp"))


def test_a_full_disk_leaves_what_was_there(tiny_disk: Path) -> None:
    folder = tiny_disk / "snapshots"
    save_three(folder)
    before = [(p.name, p.read_bytes()) for p in files(folder)]
    with pytest.raises(OSError, match="No space left"):
        save(folder, 44, {"a": np.zeros(100_000)}, {})
    assert [(p.name, p.read_bytes()) for p in sorted(folder.iterdir())] == before


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a: an array of objects"):
        save(tmp_path, 1, {"a": np.array([None])}, {})
    assert not list(tmp_path.iterdir())
