#!/usr/bin/python3 -I
"""Decode image and PDF files to raw RGB; a child of the helper, bounded by its resource limits.

Arguments: most images, most pixels an image, most bytes a file, then paths. On stdout, records of a tag byte, a
4-byte length and a payload that begins with the index of the path (4 bytes): ``E`` and then an error, ``N`` and then
a note, ``I`` and then width, height (4 bytes each) and the pixels.
"""

import io
import math
import os
import stat
import struct
import sys
from collections.abc import Iterator
from typing import Any

SOURCE_PIXELS = 40_000_000
"""Largest image that is decoded at all; 120 MB as RGB."""

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
PDF_PAGES = 4
PDF_SCALE = 150 / 72
"""PDF pages are rendered at 150 dots an inch, or fewer if they would not fit."""


def emit(tag: bytes, index: int, payload: bytes) -> None:
    """Write one record."""
    sys.stdout.buffer.write(tag + struct.pack(">II", 4 + len(payload), index) + payload)


def read(path: str, most_bytes: int) -> bytes:
    """Read a regular file of bounded size without waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > most_bytes:
            raise ValueError(f"{status.st_size} bytes; view takes files up to {most_bytes} bytes")
        return file.read(most_bytes)


def fitted(width: int, height: int, most_pixels: int) -> tuple[int, int]:
    """Return the size, scaled down evenly if it has too many pixels."""
    if width * height <= most_pixels:
        return width, height
    factor = math.sqrt(most_pixels / (width * height))
    width = min(max(1, int(width * factor)), most_pixels)
    return width, min(max(1, int(height * factor)), most_pixels // width)


def flattened(image: Any) -> Any:
    """Return an image as RGB; deep greys are stretched to 0..255, what is transparent becomes white."""
    from PIL import Image

    if image.mode.startswith("I") or image.mode == "F":
        low, high = image.getextrema()
        scale = 255.0 / ((high - low) or 1)
        image = image.convert("F").point(lambda value: value * scale + (-low * scale)).convert("L")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (255, 255, 255, 255)), image)
    return image.convert("RGB")


def pictures(data: bytes, index: int, most_images: int, most_pixels: int) -> Iterator[Any]:
    """Yield the image of a file, or the first pages of a PDF."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # checked below, with our own message
    if data[:1024].lstrip().startswith(b"%PDF"):
        import pypdfium2  # type: ignore[import-not-found]

        document = pypdfium2.PdfDocument(data)
        for number in range(min(len(document), PDF_PAGES, most_images)):
            page = document[number]
            width, height = page.get_size()
            scale = min(PDF_SCALE, 0.999 * math.sqrt(most_pixels / max(1.0, width * height)))
            yield page.render(scale=scale).to_pil()
        if len(document) > PDF_PAGES:
            emit(b"N", index, f"{len(document)} pages; the first {PDF_PAGES} are shown".encode())
        return
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        if image.width * image.height > SOURCE_PIXELS:
            raise ValueError(f"{image.width} x {image.height} pixels; view decodes up to {SOURCE_PIXELS} pixels")
        image.load()
        yield image


def reason_of(error: Exception) -> str:
    """Say in a line why a file was not decoded."""
    if type(error).__name__ == "UnidentifiedImageError":
        return f"not an image that view can decode ({', '.join(FORMATS)}, PDF)"
    if isinstance(error, MemoryError):
        return "decoding needs more memory than is allowed"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def main() -> None:
    """Decode the files that the arguments name."""
    most_images, most_pixels, most_bytes = map(int, sys.argv[1:4])
    shown = 0
    for index, path in enumerate(sys.argv[4:]):
        try:
            if shown >= most_images:
                raise ValueError("not shown; the images of this action are used up")
            for picture in pictures(read(path, most_bytes), index, most_images - shown, most_pixels):
                image = flattened(picture)
                size = fitted(image.width, image.height, most_pixels)
                if size != image.size:
                    image = image.resize(size, reducing_gap=3.0)
                emit(b"I", index, struct.pack(">II", *image.size) + image.tobytes())
                shown += 1
        except Exception as error:  # noqa: BLE001 (whatever a decoder raises on a hostile file is told to the agent)
            emit(b"E", index, reason_of(error)[:300].encode(errors="replace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
