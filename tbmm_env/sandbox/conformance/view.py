"""The command ``view``: pictures and pages as exact pixels, within limits."""

from __future__ import annotations

import struct
import zlib

from tbmm_env.record import CommandResult
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, output, same

THEME = Theme("view")

DRAW = """
from PIL import Image
def draw(name, mode, size, color): Image.new(mode, size, color).save(name)
draw("clear.png", "RGBA", (2, 2), (9, 9, 9, 0)); draw("deep.png", "I;16", (2, 2), 65535); draw("p.gif", "P", (2, 2), 0)
draw("j.jpg", "RGB", (16, 16), (0, 0, 255)); draw("b.bmp", "RGB", (2, 2), (1, 2, 3))
draw("w.webp", "RGB", (16, 16), (0, 0, 0)); draw("t.tiff", "CMYK", (2, 2), (0, 0, 0, 0))
"""
PAGES = """
import matplotlib.pyplot as p
from matplotlib.backends.backend_pdf import PdfPages
with PdfPages("f.pdf") as pdf:
  for n in range(6): p.figure(figsize=(2, 1)); pdf.savefig(); p.close()
"""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, pixel: bytes, *, claimed: int = 0) -> bytes:
    """Return a PNG file of one colour: one byte is grey, three are red, green, blue; ``claimed``: a false width."""
    kind = {1: 0, 3: 2}[len(pixel)]
    header = struct.pack(">IIBBBBB", claimed or width, claimed or height, 8, kind, 0, 0, 0)
    rows = zlib.compress((b"\0" + pixel * width) * height)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _shapes(result: CommandResult) -> list[tuple[int, ...]]:
    return [image.pixels.shape for image in result.images]


@THEME
def pixels(lab: Lab) -> None:
    """Pictures come in the order they were named, with their paths and exact pixels, and only with their action."""
    box = lab.start({"red.png": png(3, 2, b"\xff\0\0"), "灰.png": png(2, 3, b"\x4d")})
    result = box.ends("cd /task; view red.png /task/灰.png", "exited", 0)
    same("output", output(result).decode(), "view: red.png: 3 x 2 pixels\nview: /task/灰.png: 2 x 3 pixels\n")
    same("paths", [image.path for image in result.images], ["red.png", "/task/灰.png"])
    same("red pixels", result.images[0].pixels.tolist(), [[[255, 0, 0]] * 3] * 2)
    same("grey pixels", result.images[1].pixels.tolist(), [[[77, 77, 77]] * 2] * 3)
    same("type of a pixel", str(result.images[0].pixels.dtype), "uint8")
    same("pictures of the next action", box.run("true").images, ())


@THEME
def formats(lab: Lab) -> None:
    """PNG with transparency or 16 bits, GIF, JPEG, BMP, WebP and TIFF are decoded, clear parts upon white."""
    box = lab.start()
    box.text(f"python3 - <<'E'\n{DRAW}\nE")
    result = box.ends("view clear.png deep.png p.gif j.jpg b.bmp w.webp t.tiff", "exited", 0)
    same("sizes", _shapes(result), [(2, 2, 3), (2, 2, 3), (2, 2, 3), (16, 16, 3), (2, 2, 3), (16, 16, 3), (2, 2, 3)])
    same("clear pixels", result.images[0].pixels.tolist(), [[[255, 255, 255]] * 2] * 2)
    same("bitmap pixels", result.images[4].pixels.tolist(), [[[1, 2, 3]] * 2] * 2)
    blue = result.images[3].pixels[8, 8].tolist()
    holds("the JPEG is blue", blue[0] < 5 and blue[1] < 5 and blue[2] > 250, blue)


@THEME
def pages(lab: Lab) -> None:
    """The first pages of a PDF file are shown, and how many it has is said."""
    box = lab.start()
    box.text(f"python3 - <<'E'\n{PAGES}\nE", 200.0)
    result = box.ends("view f.pdf", "exited", 0)
    holds("the output says how many", b"6 pages; the first 4 are shown" in output(result), result)
    same("sizes", _shapes(result), [(150, 300, 3)] * 4)


@THEME
def view_pixels(lab: Lab) -> None:
    """A picture of up to ``view_pixels`` pixels is shown as it is, a larger one is scaled down in proportion."""
    pictures = {
        "big.png": png(400, 100, b"\x09\x09\x09"),
        "line.png": png(9000, 1, b"\x09"),
        "fits.png": png(100, 100, b"\1"),
    }
    result = lab.start(pictures, view_pixels=10_000).ends("cd /task; view big.png line.png fits.png", "exited", 0)
    same("sizes", _shapes(result), [(50, 200, 3), (1, 9000, 3), (100, 100, 3)])


@THEME
def view_files(lab: Lab) -> None:
    """``view_files`` pictures are shown in an action, more are refused, and the next action begins anew."""
    box = lab.start({"s.png": png(2, 2, b"\0\0\0")}, view_files=3)
    result = box.ends("cd /task; view s.png s.png; view s.png s.png; echo $?; view s.png; echo $?", "exited", 0)
    same("number of pictures", len(result.images), 3)
    text = output(result).decode()
    holds("the fourth is refused", "not shown; the images of this action are used up\n1\n" in text, text)
    holds("so is the fifth", "3 images were shown in this action; the limit is 3 images\n1\n" in text, text)
    same("pictures of the next action", len(box.ends("view s.png s.png s.png", "exited", 0).images), 3)


@THEME
def view_file_bytes(lab: Lab) -> None:
    """A file of up to ``view_file_bytes`` is shown, a larger one is refused."""
    small = png(2, 2, b"\0\0\0")
    box = lab.start({"s.png": small + b"x" * (4000 - len(small)), "fat.png": small + b"x" * 5000}, view_file_bytes=4000)
    same("pictures of 4000 bytes", len(box.ends("view /task/s.png", "exited", 0).images), 1)
    result = box.ends("view /task/fat.png", "exited", 1)
    same("pictures of more", len(result.images), 0)
    refusal = f"{len(small) + 5000} bytes; view takes files up to 4000 bytes"
    holds("the refusal is said", refusal in output(result).decode(), result)


@THEME
def what_is_no_picture(lab: Lab) -> None:
    """What is no picture, no file, damaged, or too large to decode has a line that says so, and no picture."""
    files = {
        "text.png": b"hello", "cut.png": png(90, 90, b"\5\6\7")[:60], "bomb.png": png(2, 2, b"\0\0\0", claimed=50_000),
        "empty.png": b"", "bad.pdf": b"%PDF-1.4 nonsense", "vector.svg": b"<svg/>",
    }  # fmt: skip
    box = lab.start(files)
    box.text("mkfifo pipe; mkdir folder")
    names = " ".join("/task/" + name for name in files)
    result = box.ends(f"view {names} pipe folder none.png /dev/zero", "exited", 1)
    text = output(result).decode()
    same("pictures", result.images, ())
    same("lines", len(text.splitlines()), 10)
    for line in (
        "50000 x 50000 pixels; view decodes up to 40000000 pixels", "view: pipe: not a regular file",
        "view: none.png: No such file or directory", "view: /task/text.png: not an image that view can decode",
    ):  # fmt: skip
        holds(f"the output says {line!r}", line in text, text)
