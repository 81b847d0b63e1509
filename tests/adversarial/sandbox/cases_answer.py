"""The answer and what reads it: tampering before collection, swaps while it is read, bombs for ``view``."""

from __future__ import annotations

import io
import struct
import zlib

from hostile_case import Case, Played, Step, python
from PIL import Image

ANY = ("none", "command_failed", "limit_hit")
ANSWER = b'{"answer": 1}\n'
WRITE_ANSWER = Step(command="echo '{\"answer\": 1}' > answer.json")

TAMPER = r"""
mkdir -p bin /tmp/lib; for n in python3 python submit check view ls cat sh bash env
do printf '#!/bin/sh\necho "forged $0"\necho forged > /workspace/answer.json\nexit 0\n' > bin/$n; done
chmod +x bin/*; cp bin/* .
printf 'raise SystemExit("forged")\n' | tee sitecustomize.py usercustomize.py json.py os.py struct.py socket.py \
  > /tmp/lib/sitecustomize.py
printf 'echo forged; echo forged > /workspace/answer.json\n' | tee .bashrc .profile .bash_profile .bash_login .inputrc \
  > .bash_logout
export PATH=/workspace/bin:/workspace LD_PRELOAD=/workspace/none.so PYTHONPATH=/tmp/lib PYTHONHOME=/tmp/lib
export PYTHONSTARTUP=/workspace/json.py BASH_ENV=/workspace/.bashrc ENV=/workspace/.bashrc PYTHONINSPECT=1
export LD_LIBRARY_PATH=/tmp/lib
submit() { echo forged; }; check() { echo forged; }; view() { echo forged; }; python3() { echo forged; }
export -f submit check view python3; alias submit=forged check=forged view=forged
hash -p /workspace/bin/check check; enable -n printf
for f in /usr/local/bin/check /usr/local/lib/tbmm/decode.py /usr/bin/python3 /etc/ld.so.preload \
  /usr/local/lib/python3.13/dist-packages/x.pth
do echo forged 2> /dev/null > $f && echo "$f was written"; done 2> /dev/null; true
"""

SWAP = r"""
import os, socket, threading
os.chdir("/workspace")
for name, letter in (("good_a", "a"), ("good_b", "b")):
    with open(name, "w") as file: file.write(letter * 60000)
os.symlink("/etc/passwd", "link"); os.symlink("/proc/self/environ", "link2"); os.mkfifo("fifo"); os.mkdir("folder")
with open("hard", "w") as file: file.write("hard")
os.link("hard", "hard2"); socket.socket(socket.AF_UNIX).bind("socket"); os.symlink("/dev/zero", "zero")
os.mkdir("deep"); os.symlink("/etc", "deep/etc")
names = ["good_a", "link", "good_b", "fifo", "link2", "hard", "folder", "socket", "zero"]
def swap():
    n = 0
    while True:
        name = names[n % len(names)]; n += 1
        try:
            if n > {swaps}: os.kill(os.getpid(), 9)
            os.rename(name, "answer.json")
            os.rename("answer.json", name)
        except OSError: pass
swap()
"""

LEASE = r"""
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
descriptor = os.open("/workspace/answer.json", os.O_RDWR)
fcntl.fcntl(descriptor, 1024, 1)  # a write lease: others who open the file wait until it is given back
fcntl.flock(descriptor, fcntl.LOCK_EX); fcntl.lockf(descriptor, fcntl.LOCK_EX)
os.system("check")
time.sleep(30)
"""


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *chunks: bytes, data: bytes = b"") -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def gif_of_many_frames() -> bytes:
    buffer = io.BytesIO()
    frames = [Image.new("P", (8, 8), n % 2) for n in range(2000)]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], optimize=False)
    return buffer.getvalue()


def picture(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), (1, 2, 3)).save(buffer, kind)
    return buffer.getvalue()


DEFLATED = zlib.compress(bytes(50_000_000), 9)
NESTED_PDF = b"%PDF-1.4\n1 0 obj\n" + b"<</Kids[" * 50_000 + b"\nendobj\ntrailer<</Root 1 0 R>>\n"
LOOPED_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 99999999/Kids[2 0 R 2 0 R]>>"
    b"endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
)
WIDE_TIFF = bytearray(picture("TIFF"))
WIDE_TIFF[WIDE_TIFF.index(struct.pack("<HH", 256, 4) if struct.pack("<HH", 256, 4) in WIDE_TIFF else b"II") + 8] = 0xFF

BOMBS = {
    "wide.png": png(60_000, 60_000),
    "lying.png": png(6_000, 6_000, data=b"\0" * 100),
    "text.png": png(8, 8, chunk(b"zTXt", b"k\0\0" + DEFLATED), data=bytes(200)),
    "profile.png": png(8, 8, chunk(b"iCCP", b"k\0\0" + DEFLATED), data=bytes(200)),
    "inflating.png": b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", DEFLATED)
    + chunk(b"IEND", b""),
    "frames.gif": gif_of_many_frames(),
    "entities.svg": b'<!DOCTYPE s [<!ENTITY a "aaaaaaaaaa">' + b"<!ENTITY b '&a;&a;&a;'>" * 9 + b"]><svg>&b;</svg>",
    "wide.tiff": bytes(WIDE_TIFF),
    "nested.pdf": NESTED_PDF,
    "looped.pdf": LOOPED_PDF,
    "cut.jpg": picture("JPEG")[:200],
    "empty.png": b"",
    "big.ppm": b"P6 99999999 99999999 255\n",
}
VIEW_ALL = " ".join(f"/task/{name}" for name in BOMBS)

FORGE_IMAGE = r"""
import glob, os, struct, subprocess, time
def record(tag, payload): return tag + struct.pack(">I", len(payload)) + payload
forged = {kind}
view = subprocess.Popen(["view", "/task/p.png"])
end = time.monotonic() + 5
while time.monotonic() < end and view.poll() is None:
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if open(path, "rb").read().split(b"\0")[2:3] == [b"/usr/local/lib/tbmm/decode.py"]:
                with open(path.replace("cmdline", "fd/1"), "wb", buffering=0) as pipe: pipe.write(forged)
                os.kill(int(path.split("/")[2]), 9)
        except OSError: pass
print("viewed", view.wait())
"""
FORGED = {
    "wrong_size": 'record(b"I", struct.pack(">III", 0, 1000, 1000) + b"x")',
    "no_pixels": 'record(b"I", struct.pack(">III", 0, 0, 7))',
    "huge": 'record(b"I", struct.pack(">III", 0, 4294967295, 4294967295) + b"x" * 100)',
    "other_index": 'record(b"I", struct.pack(">III", 9999, 1, 1) + b"abc") * 30',
    "flood": 'record(b"N", struct.pack(">I", 0) + b"\\xff" * 60000)',
    "cut": 'struct.pack(">cI", b"I", 1 << 31) + b"x"',
}


def _only_whole_snapshots(played: Played) -> None:
    allowed = {b"", b"a" * 60_000, b"b" * 60_000}
    assert {found.data for found in played.checked} <= allowed
    assert len(played.checked) == 40
    assert len({found.status for found in played.checked}) > 2  # it was swapped
    assert {found.status for found in played.checked} <= {
        "regular", "missing", "link", "not_regular", "hard_link", "unreadable",
    }  # fmt: skip


def _one_snapshot(played: Played) -> None:
    assert played.collected.data in (b"", b"a" * 60_000, b"b" * 60_000)
    assert played.collected == played.box.collect()


def _nothing_unseemly_shown(played: Played) -> None:
    assert all(image.pixels.shape[0] * image.pixels.shape[1] <= 1024 * 1024 for image in played.results[0].images)
    text = played.text(0)
    assert "60000 x 60000 pixels; view decodes up to" in text
    assert "root:" not in text
    for line in ("pipe: not a regular file", "/dev/zero: not a regular file", "passwd: not an image", "empty.png"):
        assert line in text, line


def _checks_were_real(played: Played) -> None:
    assert [found.data for found in played.checked] == [ANSWER, ANSWER]
    assert "was written" not in played.text(1)
    assert played.results[3].images[0].pixels.tolist()[0][0] == [1, 2, 3]
    assert played.results[4].submitted


CASES = (
    Case(
        name="answer_tampering_with_every_program",
        files={"p.png": picture("PNG")},
        steps=(
            WRITE_ANSWER,
            Step(command=TAMPER, fault=ANY),
            Step(command="\\unset LD_PRELOAD; /usr/local/bin/check", shows=("checked: regular 14\n",)),
            Step(command="/usr/local/bin/view /task/p.png", shows=("64 x 64 pixels",)),
            Step(command="/usr/local/bin/submit; /usr/local/bin/check", shows=("submitted;", "checked: regular 14\n")),
        ),
        collected=ANSWER,
        check=_checks_were_real,
    ),
    Case(
        name="answer_tampering_survives_no_new_shell",
        steps=(
            WRITE_ANSWER,
            Step(command=TAMPER, fault=ANY),
            Step(command="exit", fault="command_failed", ending="shell_restarted", status=0),
            Step(
                command="python3 -c 'print(1)'; type -t check; check; echo $PATH",
                hides=("forged",),
                shows=("1\nfile\n",),
            ),
        ),
        collected=ANSWER,
    ),
    Case(
        name="answer_swapped_while_it_is_checked",
        steps=(
            Step(command=f"cat > /tmp/swap.py <<'E'\n{SWAP.replace('{swaps}', '100000000')}\nE"),
            Step(command="setsid python3 /tmp/swap.py > /dev/null 2>&1 &"),
            *[Step(command="for i in $(seq 20); do check; done > /dev/null", wall_s=60.0)] * 2,
            Step(command="pkill python3; rm -rf answer.json; printf bbb > answer.json", fault=ANY),
        ),
        collected=b"bbb",
        check=_only_whole_snapshots,
    ),
    Case(
        name="answer_swapped_until_it_is_collected",
        steps=(
            Step(command=f"cat > /tmp/swap.py <<'E'\n{SWAP.replace('{swaps}', '100000000')}\nE"),
            Step(command="for i in 1 2 3; do setsid python3 /tmp/swap.py > /dev/null 2>&1 & done; sleep 0.5"),
        ),
        collected=None,
        check=_one_snapshot,
    ),
    Case(
        name="answer_under_a_lease_and_locks",
        steps=(
            WRITE_ANSWER,
            Step(command=python(LEASE), wall_s=3.0, fault="limit_hit", shows=("checked: ",)),
            Step(command="check", prints="checked: regular 14\n"),
        ),
        collected=ANSWER,
    ),
    Case(
        name="view_bombs",
        files=BOMBS,
        steps=(
            Step(
                command=f"mkfifo pipe; ln -s /etc/passwd passwd; view {VIEW_ALL} pipe passwd /dev/zero /proc/kmsg",
                wall_s=60.0,
                fault=ANY,
            ),
            Step(command="echo fine", prints="fine\n"),
        ),
        check=_nothing_unseemly_shown,
    ),
    Case(
        name="view_decoder_that_is_made_to_say_short",
        files={"p.png": picture("PNG")},
        steps=(
            Step(
                command=python(FORGE_IMAGE.replace("{kind}", 'record(b"I", struct.pack(">I", 0)) + record(b"E", b"")')),
                shows=("viewed",),
                fault=ANY,
            ),
            Step(command="view /task/p.png", shows=("64 x 64 pixels",)),
        ),
    ),
    *[
        Case(
            name=f"view_decoder_that_is_made_to_say_{name}",
            files={"p.png": picture("PNG")},
            steps=(
                Step(command=python(FORGE_IMAGE.replace("{kind}", kind)), shows=("viewed",), fault=ANY),
                Step(command="view /task/p.png", shows=("64 x 64 pixels",)),
            ),
        )
        for name, kind in FORGED.items()
    ],
)
