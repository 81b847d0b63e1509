import sys


def reply(data):
    sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
    sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()


sys.stdout.buffer.write(b"\xff\xff\xff\xff")
sys.stdout.buffer.flush()
sys.stdin.read()
