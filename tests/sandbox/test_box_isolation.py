"""Programs that an agent has written itself run, and boxes live on without the thread that started them.

That a box shows and lets out nothing is tested by the hostile suite, ``tests/adversarial/sandbox``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Start = Callable[..., Any]


def test_a_freshly_written_program_runs(tried: Any) -> None:
    assert (
        tried.text("printf '#!/bin/sh\\necho run\\n' > p; chmod +x p; ./p; cp /usr/bin/echo /tmp/e; /tmp/e e")
        == "run\ne\n"
    )
    numba = "import numba\n@numba.njit\ndef f(n):\n  s = 0\n  for i in range(n): s += i\n  return s\nprint(f(10))"
    assert tried.text(f"python3 - <<'E'\n{numba}\nE", 60.0) == "45\n"


def test_many_boxes_from_passing_threads(start: Start) -> None:
    boxes: list[Any] = []
    threads = [threading.Thread(target=lambda: boxes.append(start())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [box.text("echo alive") for box in boxes] == ["alive\n"] * 4  # none died with the thread that started it
