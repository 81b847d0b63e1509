"""Gymnasium spaces for terminal text in any language and for figures of any size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from numpy.typing import NDArray

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Utf8Text(Space[str]):
    """Text of at most ``max_bytes`` UTF-8 bytes, any characters but lone surrogates.

    ``sample()`` gives one to four short lower-case words, so that a random policy types harmless commands.

    Args:
        max_bytes: inclusive bound on the encoded length, at least 32.
        seed: seed or generator of the space's own random numbers.

    Raises:
        ValueError: when ``max_bytes`` is below 32.
    """

    def __init__(self, max_bytes: int, seed: int | np.random.Generator | None = None) -> None:
        if max_bytes < 32:
            raise ValueError(f"max_bytes is {max_bytes}; it must be at least 32")
        self.max_bytes = int(max_bytes)
        super().__init__(dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text of any length has no fixed-size array form."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return one to four random lower-case words of one to six letters.

        Args:
            mask: not supported; must be None.
            probability: not supported; must be None.

        Raises:
            ValueError: when a mask or probability is given.
        """
        _refuse_masks("Utf8Text", mask, probability)
        words = []
        for _ in range(int(self.np_random.integers(1, 5))):
            size = int(self.np_random.integers(1, 7))
            words.append("".join(_LETTERS[i] for i in self.np_random.integers(0, 26, size)))
        return " ".join(words)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a str that encodes to at most ``max_bytes`` bytes of UTF-8."""
        if not isinstance(x, str) or len(x) > self.max_bytes:
            return False
        try:
            return len(x.encode("utf-8")) <= self.max_bytes
        except UnicodeEncodeError:
            return False

    def __repr__(self) -> str:
        return f"Utf8Text({self.max_bytes})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Utf8Text) and self.max_bytes == other.max_bytes

    __hash__ = None  # type: ignore[assignment]


class Image(Space[NDArray[np.uint8]]):
    """RGB image of any size up to ``max_pixels``: uint8, shape (height, width, 3).

    Args:
        max_pixels: inclusive bound on height * width, at least 1.
        seed: seed or generator of the space's own random numbers.

    Raises:
        ValueError: when ``max_pixels`` is below 1.
    """

    def __init__(self, max_pixels: int, seed: int | np.random.Generator | None = None) -> None:
        if max_pixels < 1:
            raise ValueError(f"max_pixels is {max_pixels}; it must be at least 1")
        self.max_pixels = int(max_pixels)
        super().__init__(dtype=np.uint8, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """An image of any size has no fixed-size array form."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> NDArray[np.uint8]:
        """Return noise of a random small size.

        Args:
            mask: not supported; must be None.
            probability: not supported; must be None.

        Raises:
            ValueError: when a mask or probability is given.
        """
        _refuse_masks("Image", mask, probability)
        side = max(1, min(16, int(self.max_pixels**0.5)))
        height, width = (int(n) for n in self.np_random.integers(1, side + 1, 2))
        return self.np_random.integers(0, 256, (height, width, 3), dtype=np.uint8)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a uint8 array (height, width, 3) of at most ``max_pixels`` pixels."""
        return (
            isinstance(x, np.ndarray)
            and x.dtype == np.uint8
            and x.ndim == 3
            and x.shape[2] == 3
            and 1 <= x.shape[0] * x.shape[1] <= self.max_pixels
        )

    def to_jsonable(self, sample_n: Iterable[NDArray[np.uint8]]) -> list[list[Any]]:
        """Return nested lists."""
        return [image.tolist() for image in sample_n]

    def from_jsonable(self, sample_n: Sequence[list[Any]]) -> list[NDArray[np.uint8]]:
        """Return arrays of what :meth:`to_jsonable` gave."""
        return [np.asarray(image, dtype=np.uint8) for image in sample_n]

    def __repr__(self) -> str:
        return f"Image({self.max_pixels})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.max_pixels == other.max_pixels

    __hash__ = None  # type: ignore[assignment]


def _refuse_masks(space: str, mask: Any | None, probability: Any | None) -> None:
    if mask is not None or probability is not None:
        raise ValueError(f"{space}.sample takes neither mask nor probability")
