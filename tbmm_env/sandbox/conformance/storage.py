"""Limits of what is written: bytes of each folder, and files."""

from __future__ import annotations

from dataclasses import asdict

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, output, same

THEME = Theme("storage")


def _sized(lab: Lab, folder: str, limit: str) -> None:
    box = lab.start()
    size = asdict(box.limits)[limit]
    box.ends(f"head -c {size * 3 // 4} /dev/zero > {folder}/f", "exited", 0)
    result = box.ends(f"head -c {size + 1} /dev/zero > {folder}/f", "exited", 1)
    holds(f"{size + 1} bytes do not fit", b"No space left on device" in output(result), result)
    written = int(box.text(f"stat -c %s {folder}/f; rm {folder}/f"))
    holds(f"about {size} bytes did", 0.9 * size < written <= size, written)
    box.ends(f"head -c {size * 3 // 4} /dev/zero > {folder}/g", "exited", 0)


@THEME
def workspace_bytes(lab: Lab) -> None:
    """/workspace holds ``workspace_bytes``; what is removed makes room."""
    _sized(lab, "/workspace", "workspace_bytes")


@THEME
def tmp_bytes(lab: Lab) -> None:
    """/tmp holds ``tmp_bytes``; what is removed makes room."""
    _sized(lab, "/tmp", "tmp_bytes")


@THEME
def shm_bytes(lab: Lab) -> None:
    """/dev/shm holds ``shm_bytes``; what is removed makes room."""
    _sized(lab, "/dev/shm", "shm_bytes")


@THEME
def inodes(lab: Lab) -> None:
    """Each folder holds ``inodes`` files."""
    box = lab.start(inodes=500)
    for folder in ("/workspace", "/tmp"):
        box.ends(f"cd {folder}; for i in $(seq 400); do : > f$i; done", "exited", 0)
        result = box.run("for i in $(seq 600); do : > g$i || break; done")
        holds(f"600 more do not fit in {folder}", b"No space left on device" in output(result), result)


@THEME
def many_files(lab: Lab) -> None:
    """Thousands of files can be made and removed."""
    box = lab.start()
    box.prints("mkdir d; cd d; for i in $(seq 4000); do : > f$i; done; ls | wc -l; cd ..; rm -r d; ls -A", "4000\n")


@THEME
def sparse_files(lab: Lab) -> None:
    """A sparse file takes what is written of it."""
    lab.start().prints("truncate -s 10G f; stat -c %s f; du -k f | cut -f1; printf x >> f; rm f", f"{10 << 30}\n0\n")


@THEME
def a_full_disk(lab: Lab) -> None:
    """With every folder full the shell runs, heredocs too, and the answer can be submitted."""
    box = lab.start()
    box.text("echo '{}' > answer.json")
    box.run("for d in /workspace /tmp /dev/shm; do head -c 1G /dev/zero > $d/fill; done")
    box.prints("echo fine; cat <<'E'\nhere\nE", "fine\nhere\n")
    holds("submit works", box.run("submit").submitted, False)
    same("answer", box.box.collect().data, b"{}\n")
