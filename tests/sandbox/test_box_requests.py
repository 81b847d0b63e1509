"""The socket behind submit, check and view, when an agent attacks it; the commands are in the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tbmm_env.sandbox.conformance.view import png

Start = Callable[..., Any]


def test_a_decoder_that_the_agent_attacks_harms_only_the_view(start: Start) -> None:
    tried = start({"p.png": png(2000, 2000, b"\1\1\1")})
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
