"""The commands of the box: submit, check, view; and what happens to nonsense said to their socket."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

Start = Callable[..., Any]


def picture(kind: str, mode: str, size: tuple[int, int], color: Any) -> bytes:
    buffer = io.BytesIO()
    Pillow.new(mode, size, color).save(buffer, kind)
    return buffer.getvalue()


def test_submit(tried: Any) -> None:
    result = tried.run("submit; echo more")
    assert result.submitted
    assert result.head == b"submitted; the episode ends when this action does\nmore\n"
    assert not tried.run("true").submitted
    assert tried.run("submit now").exit_status == 2
    assert not tried.run("submit --help").submitted
    assert tried.run("python3 -c \"import os; os.system('cd /tmp && submit')\"").submitted
    assert tried.run("submit & wait; exit 4").submitted


def test_requests_between_actions_are_refused(tried: Any) -> None:
    tried.text("(sleep 0.5; submit > log 2>&1; check >> log 2>&1; echo $? >> log) &")
    import time

    time.sleep(1.2)
    result = tried.run("cat log")
    assert not result.submitted
    assert b"submit: no action is running" in result.head
    assert b"\n1\n" in result.head
    assert tried.seen == []


def test_check_limit(start: Start) -> None:
    tried = start(checks=3)
    result = tried.run("check; check; check; check; echo $?")
    assert result.head.decode() == "checked: missing 0\n" * 3 + (
        "check: used 4 times in this action; the limit is 3 times\n1\n"
    )
    assert len(tried.seen) == 3
    assert tried.text("check") == "checked: missing 0\n"


def test_an_error_in_the_callers_check_ends_the_box(tried: Any) -> None:
    from tbmm_env.errors import BoxLost

    def on_check(artifact: Any) -> str:
        raise KeyError("caller")

    with pytest.raises(KeyError, match="caller"):
        tried.box.run("check", wall_s=5.0, on_check=on_check)
    with pytest.raises(BoxLost, match="KeyError"):
        tried.run("true")


def test_view_pixels_exactly(start: Start) -> None:
    files = {
        "red.png": picture("PNG", "RGB", (3, 2), (255, 0, 0)),
        "灰.png": picture("PNG", "L", (2, 3), 77),
        "clear.png": picture("PNG", "RGBA", (2, 2), (0, 0, 0, 0)),
        "deep.png": picture("PNG", "I;16", (2, 2), 1000),
        "p.gif": picture("GIF", "P", (2, 2), 0),
        "j.jpg": picture("JPEG", "RGB", (16, 16), (0, 128, 0)),
        "b.bmp": picture("BMP", "RGB", (2, 2), (1, 2, 3)),
        "w.webp": picture("WEBP", "RGB", (16, 16), (0, 0, 0)),
        "t.tiff": picture("TIFF", "CMYK", (2, 2), (0, 0, 0, 0)),
    }
    tried = start(files, view_files=9)
    result = tried.run("cd /task; view red.png /task/灰.png clear.png deep.png p.gif j.jpg b.bmp w.webp t.tiff")
    assert (result.ending, result.exit_status) == ("exited", 0)
    assert result.head.decode().startswith("view: red.png: 3 x 2 pixels\nview: /task/灰.png: 2 x 3 pixels\n")
    assert len(result.images) == 9
    assert result.images[0].pixels.dtype == np.uint8
    assert result.images[0].pixels.tolist() == [[[255, 0, 0]] * 3] * 2
    assert result.images[1].path == "/task/灰.png"
    assert result.images[1].pixels.tolist() == [[[77, 77, 77]] * 2] * 3
    assert result.images[2].pixels.tolist() == [[[255, 255, 255]] * 2] * 2
    assert result.images[6].pixels.tolist() == [[[1, 2, 3]] * 2] * 2
    assert tried.run("true").images == ()


def test_view_scales_down(start: Start) -> None:
    tried = start(
        {"big.png": picture("PNG", "RGB", (400, 100), 9), "line.png": picture("PNG", "L", (9000, 1), 9)},
        view_pixels=10_000,
    )
    result = tried.run("view /task/big.png /task/line.png")
    assert result.images[0].pixels.shape == (50, 200, 3)
    assert result.images[1].pixels.shape == (1, 9000, 3)


def test_view_limits(start: Start) -> None:
    small = picture("PNG", "RGB", (2, 2), 0)
    tried = start({"s.png": small, "fat.png": small + b"x" * 5000}, view_files=3, view_file_bytes=4000)
    result = tried.run("view /task/s.png /task/s.png; view /task/s.png /task/s.png; echo $?; view /task/s.png; echo $?")
    assert len(result.images) == 3
    assert "not shown; the images of this action are used up\n1\n" in result.head.decode()
    assert "3 images were shown in this action; the limit is 3 images\n1\n" in result.head.decode()
    result = tried.run("view /task/fat.png")
    assert result.exit_status == 1
    assert f"{len(small) + 5000} bytes; view takes files up to 4000 bytes" in result.head.decode()


def test_view_of_what_is_no_image(start: Start) -> None:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR"
    ihdr = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    import zlib

    bomb = header + ihdr + struct.pack(">I", zlib.crc32(b"IHDR" + ihdr)) + b"\0\0\0\0IDAT" + b"\0" * 40
    files = {
        "text.png": b"hello", "cut.png": picture("PNG", "RGB", (90, 90), 5)[:60], "bomb.png": bomb, "empty.png": b"",
        "bad.pdf": b"%PDF-1.4 nonsense", "vector.svg": b"<svg/>",
    }  # fmt: skip
    tried = start(files)
    tried.text("mkfifo pipe; mkdir folder")
    result = tried.run(f"view {' '.join('/task/' + name for name in files)} pipe folder none.png /dev/zero")
    text = result.head.decode()
    assert result.images == ()
    assert result.exit_status == 1
    assert len(text.splitlines()) == 10
    assert "50000 x 50000 pixels; view decodes up to 40000000 pixels" in text
    assert "view: pipe: not a regular file" in text
    assert "view: none.png: No such file or directory" in text
    assert "view: /task/text.png: not an image that view can decode" in text


def test_view_of_a_pdf(tried: Any) -> None:
    program = (
        "import matplotlib.pyplot as p; from matplotlib.backends.backend_pdf import PdfPages\n"
        "with PdfPages('f.pdf') as pdf:\n  for n in range(6):\n    p.figure(figsize=(2, 1)); pdf.savefig(); p.close()\n"
    )
    tried.text(f"python3 - <<'E'\n{program}\nE", 60.0)
    result = tried.run("view f.pdf")
    assert "6 pages; the first 4 are shown" in result.head.decode()
    assert [image.pixels.shape for image in result.images] == [(150, 300, 3)] * 4


def test_a_decoder_that_the_agent_attacks_harms_only_the_view(start: Start) -> None:
    tried = start({"p.png": picture("PNG", "RGB", (2000, 2000), 1)})
    tried.text("(while :; do pkill -9 -f decode.py; done) & sleep 0.1")
    for _ in range(3):
        result = tried.run("view /task/p.png")
        assert result.ending == "exited"
    assert tried.run("kill %1").ending == "exited"
    assert tried.run("view /task/p.png; true").exit_status == 0


def test_nonsense_on_the_socket(tried: Any) -> None:
    program = r"""
import json, os, socket, struct
def connect():
    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect("\0tbmm"); return s
def say(data):
    s = connect()
    try:
        s.sendall(data); return s.recv(100)
    except OSError as error:
        return type(error).__name__
def framed(data): return struct.pack(">I", len(data)) + data
cases = [b"\xff" * 4, framed(b"{"), framed(b"[" * 100000), framed(b"[]"), framed(b'{"op": []}'),
    framed(b'{"op": "nothing"}'), framed(b'{"op": "view"}'), framed(b'{"op": "view", "files": "x", "paths": 3}'),
    framed(b'{"op": "view", "files": ["\\ud800"], "paths": ["\\ud800"]}'),
    framed(b'{"op": "view", "files": ["a"], "paths": ["\\u0000"]}'),
    framed(b'{"op": "view", "files": ["a"], "paths": []}'),
    framed(json.dumps({"op": "view", "files": ["a"] * 60000, "paths": ["b"] * 60000}).encode()[:200000]),
    framed(b'{"op": "check"}') * 3, framed(b'{"op": ' + b"9" * 5000 + b"}"), struct.pack(">I", 1 << 30)]
for case in cases: say(case)
held = []
for _ in range(40):
    try: held.append(connect())
    except OSError: pass
for s in held[:10]:
    try: s.sendall(b"\0\0\0")
    except OSError: pass
for s in held[10:]: s.close()
import time; time.sleep(0.2)
flood = connect()
try:
    for _ in range(100): flood.sendall(b"x" * 65536)
except OSError: pass
for s in held[:10]: s.close()
print("done")
"""
    assert tried.text(f"python3 - <<'E'\n{program}\nE").endswith("done\n")
    assert tried.text("check") == "checked: missing 0\n"


def test_connections_that_are_never_used_are_dropped(tried: Any) -> None:
    hold = (
        "import socket, time\nheld = [socket.socket(socket.AF_UNIX) for _ in range(16)]\n"
        "[s.connect('\\0tbmm') for s in held]\ntime.sleep(60)"
    )
    tried.text(f'nohup python3 -c "{hold}" > /dev/null 2>&1 & sleep 0.3')
    result = tried.run("until check 2> /dev/null; do sleep 0.5; done", 15.0)
    assert result.head == b"checked: missing 0\n"
