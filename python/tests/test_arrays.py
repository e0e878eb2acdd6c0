"""Proves: arrays that some processes write in one distribution are read by others in another."""

import multiprocessing

import numpy as np
import pytest

import unisono
from unisono import errors

WHOLE = np.arange(13 * 17, dtype="i4").reshape(13, 17)


def _write(arguments):
    rank, size, options = arguments
    with unisono.open_array("array", "w", shape=WHOLE.shape, dtype="i4", rank=rank, size=size, **options) as array:
        moved = array.write(np.asarray(WHOLE[np.ix_(*array.local_indices)], order=array.order))
        assert moved.bytes == np.prod(array.local_shape) * 4
    return moved.bytes


def _read(arguments):
    rank, size, options = arguments
    with unisono.open_array("array", rank=rank, size=size, **options) as array:
        assert array.shape == WHOLE.shape and array.dtype == "i4"
        return bool((array.read() == WHOLE[np.ix_(*array.local_indices)]).all())


def _run(function, size, options):
    context = multiprocessing.get_context("fork")
    with context.Pool(size) as pool:
        return pool.map(function, [(rank, size, options) for rank in range(size)], chunksize=1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("written", [("block", None), ("cyclic(3)", "block"), (None, "cyclic")])
def test_written_and_read_in_other_distributions(instance, order, written):
    assert sum(_run(_write, 4, {"distribution": written, "order": order})) == WHOLE.nbytes
    for size, read in [(1, None), (3, ("block", None)), (4, ("cyclic", "cyclic(5)")), (2, (None, "block"))]:
        assert all(_run(_read, size, {"distribution": read}))


def test_a_copy_is_a_file_of_numpy(instance, tmp_path):
    import fsspec

    _run(_write, 2, {"distribution": ("block", None)})
    fsspec.filesystem("unisono", instance=instance).get("array", str(tmp_path / "copy.npy"))
    assert (np.load(tmp_path / "copy.npy", mmap_mode="r") == WHOLE).all()
    with unisono.open_array("raw", "w", shape=WHOLE.shape, dtype="i4", header=False) as array:
        array.write(WHOLE)
    fsspec.filesystem("unisono", instance=instance).get("raw", str(tmp_path / "raw"))
    assert (np.memmap(tmp_path / "raw", "i4", "r", shape=WHOLE.shape) == WHOLE).all()


def _open_missing(arguments):
    rank, size, options = arguments
    try:
        unisono.open_array("no-array", rank=rank, size=size, **options)
    except FileNotFoundError as error:
        return error.kind
    return None


def test_a_failure_has_the_same_kind_everywhere(instance):
    assert _run(_open_missing, 3, {}) == ["not-found"] * 3


@pytest.mark.parametrize("word", ["none", "block", "cyclic", "cyclic(3)", "cyclic(40)"])
def test_indices_are_those_of_the_distribution(word):
    from unisono.arrays import _count, _indices

    for extent in (0, 1, 5, 12, 13, 37):
        for processes in (1,) if word == "none" else (1, 2, 3, 7):
            own = [_indices(extent, word, processes, place) for place in range(processes)]
            assert sorted(np.concatenate(own)) == list(range(extent))
            assert [len(one) for one in own] == [_count(extent, word, processes, at) for at in range(processes)]


def test_large_arrays_need_no_memory_for_their_indices(instance):
    with unisono.open_array("sparse", "w", shape=(2**33, 4), dtype="f8", distribution=("cyclic", None)) as array:
        assert array.local_shape == (2**33, 4)


def test_empty_parts_take_part(instance):
    options = {"distribution": ("block", None), "grid": (12, 1)}
    # Blocks of two: seven processes have all 13 rows.
    assert _run(_write, 12, options)[7:] == [0] * 5


def test_what_does_not_fit_is_refused(instance):
    with unisono.open_array("fit", "w", shape=(8, 8), dtype="f8") as array:
        with pytest.raises(ValueError, match="astype"):
            array.write(np.zeros((8, 8), "f4"))
        with pytest.raises(ValueError, match="shape"):
            array.write(np.zeros((8, 7)))
        with pytest.raises(errors.UsageError, match="gives nothing"):
            array.write(None)
        with pytest.warns(unisono.arrays.CopyWarning):
            array.write(np.zeros((8, 16))[:, ::2])
        started = array.start_write(np.ones((8, 8)))
        assert started.wait().bytes == 512
        assert started.done()
    with pytest.raises(errors.UsageError, match="closed"):
        array.read()
    with unisono.open_array("fit") as array, pytest.raises(errors.UsageError, match="opened to be read"):
        array.write(np.zeros((8, 8)))
    with pytest.raises(errors.UsageError, match="its shape is"):
        unisono.open_array("fit", shape=(9, 9)).close()
    with pytest.raises(FileNotFoundError):
        unisono.open_array("no-array")
    for wrong in [{"mode": "w", "shape": (2,), "dtype": object}, {"size": 2}, {"mode": "q"}, {"order": "K"}, {"distribution": ("block",)}, {"grid": (2, 2)}]:
        with pytest.raises(errors.UsageError):
            unisono.open_array("fit", **wrong)
