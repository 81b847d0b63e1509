#!/usr/bin/python3 -IS
"""The commands ``submit``, ``check`` and ``view FILE...`` of the box: ask the helper, print its answer.

Installed under three names in the image. Standard library only. Request: 4-byte length, JSON; reply: status byte,
4-byte length, UTF-8 text. The socket is abstract, so it works with a full disk and from any working directory.
"""

import json
import os
import socket
import struct
import sys

USAGE = {
    "submit": "usage: submit\nEnds the episode: /workspace/answer.json as it is now is judged.\n",
    "check": "usage: check\nChecks form and bounds of /workspace/answer.json; does not say how good it is.\n",
    "view": "usage: view FILE...\nShows images (PNG, JPEG, GIF, BMP, WebP, TIFF, PPM) and first pages of PDF files.\n",
}


def exactly(connection: socket.socket, count: int) -> bytes:
    """Read so many bytes."""
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the helper closed the connection")
        data += chunk
    return data


def main() -> int:
    """Ask, print, and return the exit status."""
    name, files = os.path.basename(sys.argv[0]), sys.argv[1:]  # noqa: PTH119 (pathlib is slow to import)
    if name not in USAGE or files[:1] in (["-h"], ["--help"]) or bool(files) != (name == "view"):
        sys.stderr.write(USAGE.get(name, f"{name}: not one of submit, check, view\n"))
        return 2
    paths = [os.path.join(os.getcwd(), file) for file in files]  # noqa: PTH109, PTH118
    request = json.dumps({"op": name, "files": files, "paths": paths}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect("\0tbmm")
            connection.sendall(struct.pack(">I", len(request)) + request)
            status, length = struct.unpack(">BI", exactly(connection, 5))
            text = exactly(connection, length)
        except OSError as error:
            sys.stderr.write(f"{name}: the helper of this box did not answer ({error})\n")
            return 1
    stream = sys.stdout.buffer if status == 0 else sys.stderr.buffer
    stream.write(text)
    stream.flush()
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
