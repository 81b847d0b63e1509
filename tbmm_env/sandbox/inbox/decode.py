#!/usr/bin/python3 -I
"""Decode image and PDF files to raw RGB; a child of the helper, bounded by its resource limits.

Arguments: most images, most pixels an image, most bytes a file, then paths. On stdout, records of a tag byte,
a 4-byte length and the payload, which begins with
the index of the path (4 bytes): ``E`` and then the error, ``N`` and then a note, ``I`` and then width, height (4 bytes each), pixels.
"""

import io
import math
import os
import stat
import struct
import sys

SOURCE_PIXELS = 40_000_000
"""Largest image that is decoded at all; 120 MB as RGB."""

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
PDF_PAGES = 4
PDF_POINTS_SCALE = 150 / 72
"""PDF pages are rendered at 150 dots an inch, or fewer if they would not fit."""


def emit(tag, payload):
    sys.stdout.buffer.write(tag + struct.pack(">I", len(payload)) + payload)


def read(path, most_bytes):
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > most_bytes:
            raise ValueError(f"{status.st_size} bytes; view takes files up to {most_bytes} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes + 1)[:most_bytes]
    finally:
        os.close(descriptor)


def fitted(width, height, most_pixels):
    if width * height <= most_pixels:
        return width, height
    factor = math.sqrt(most_pixels / (width * height))
    width, height = max(1, int(width * factor)), max(1, int(height * factor))
    return min(width, most_pixels // height or 1), min(height, most_pixels // min(width, most_pixels))


def flattened(image):
    from PIL import Image

    if image.mode.startswith("I") or image.mode == "F":
        low, high = image.getextrema()
        image = image.convert("F").point(lambda value: (value - low) * (255.0 / ((high - low) or 1))).convert("L")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def pictures(data, index, most_images, most_pixels):
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # checked below, with our own message
    if data[:1024].lstrip().startswith(b"%PDF"):
        import pypdfium2

        document = pypdfium2.PdfDocument(data)
        for number in range(min(len(document), PDF_PAGES, most_images)):
            page = document[number]
            width, height = page.get_size()
            scale = min(PDF_POINTS_SCALE, math.sqrt(most_pixels / max(1.0, width * height)) * 0.999)
            yield page.render(scale=scale).to_pil()
        if len(document) > PDF_PAGES:
            emit(b"N", struct.pack(">I", index) + f"{len(document)} pages; the first {PDF_PAGES} are shown".encode())
        return
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        if image.width * image.height > SOURCE_PIXELS:
            raise ValueError(f"{image.width} x {image.height} pixels; view decodes up to {SOURCE_PIXELS} pixels")
        image.load()
        yield image


def main():
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
                emit(b"I", struct.pack(">III", index, *image.size) + image.tobytes())
                shown += 1
        except Exception as error:  # noqa: BLE001 (whatever a decoder raises on a hostile file is told to the agent)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
            if type(error).__name__ == "UnidentifiedImageError":
                reason = f"not an image that view can decode ({', '.join(FORMATS)}, PDF)"
            emit(b"E", struct.pack(">I", index) + reason[:300].encode(errors="replace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
