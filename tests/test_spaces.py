"""The two spaces: bounds in bytes and pixels, any language, reproducible samples."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from gymnasium import spaces

from tbmm_env.spaces import Image, Utf8Text


def test_text_is_bounded_in_bytes() -> None:
    space = Utf8Text(32)
    assert space.contains("x" * 32)
    assert not space.contains("x" * 33)
    assert space.contains("板" * 10 + "xx")
    assert not space.contains("板" * 11)
    assert space.contains("")
    assert space.contains("a\nb\x00\t;é")
    assert not space.contains("\ud800")
    assert not space.contains(b"bytes")
    assert not space.contains(None)


def test_text_samples_are_harmless_words_and_reproducible() -> None:
    first, second = Utf8Text(64, seed=3), Utf8Text(64, seed=3)
    for _ in range(50):
        sample = first.sample()
        assert sample == second.sample()
        assert re.fullmatch(r"[a-z]{1,6}( [a-z]{1,6}){0,3}", sample)
        assert first.contains(sample)


def test_image_shapes() -> None:
    space = Image(100)
    assert space.contains(np.zeros((10, 10, 3), np.uint8))
    assert not space.contains(np.zeros((10, 11, 3), np.uint8))
    assert not space.contains(np.zeros((10, 10, 4), np.uint8))
    assert not space.contains(np.zeros((10, 10, 3), np.float32))
    assert not space.contains(np.zeros((0, 10, 3), np.uint8))
    assert not space.contains([[[0, 0, 0]]])
    for _ in range(20):
        assert space.contains(space.sample())


@pytest.mark.parametrize("make", [lambda: Utf8Text(64), lambda: Image(64)])
def test_equality_copy_and_json(make) -> None:  # type: ignore[no-untyped-def]
    space = make()
    assert space == make()
    assert space != spaces.Discrete(3)
    assert copy.deepcopy(space) == space
    samples = [space.sample() for _ in range(3)]
    back = space.from_jsonable(space.to_jsonable(samples))
    assert all(np.array_equal(one, other) for one, other in zip(samples, back, strict=True))
    assert not space.is_np_flattenable
    assert repr(space).endswith("(64)")


@pytest.mark.parametrize("space", [Utf8Text(64), Image(64)])
def test_masks_are_refused(space: Utf8Text | Image) -> None:
    with pytest.raises(ValueError, match="neither mask nor probability"):
        space.sample(mask=1)


def test_silly_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        Utf8Text(31)
    with pytest.raises(ValueError, match="at least 1"):
        Image(0)


def test_unequal_bounds_differ() -> None:
    assert Utf8Text(64) != Utf8Text(65)
    assert Image(64) != Image(65)
