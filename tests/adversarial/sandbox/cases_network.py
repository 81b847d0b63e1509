"""The network, and sockets of the host: nothing to reach, nobody who hears."""

from __future__ import annotations

from hostile_case import Case, Played, Step, python

TCP = r"""
import socket, time
for address in (("127.0.0.1", @TCP@), ("192.0.2.1", 80), ("169.254.169.254", 80), ("2001:db8::1", 80), ("::1", @TCP@)):
    began = time.monotonic()
    try: socket.create_connection(address, 5); print("connected", address)
    except OSError as error: print("no IPv6" if ":" in address[0] else error.strerror)
    print("late" if time.monotonic() - began > 4 else "at once")
print([name for _, name in socket.if_nameindex()])
"""
REFUSED, UNREACHABLE, NO_IPV6 = (
    f"{why}\nat once\n" for why in ("Connection refused", "Network is unreachable", "no IPv6")
)

UDP = r"""
import socket
for address in (("127.0.0.1", @UDP@), ("192.0.2.1", 53), ("169.254.169.254", 53), ("255.255.255.255", 53)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    try: print(s.sendto(b"out", address))
    except OSError as error: print(error.strerror)
for name in ("example.org", "host.docker.internal", "metadata.google.internal", "@TOKEN@.example.org"):
    try: socket.getaddrinfo(name, 80); print("resolved", name)
    except OSError: print("no name")
"""

RAW = r"""
import ctypes, errno, fcntl, os, socket, struct
def tried(*words):
    try: socket.socket(*words); return "opened"
    except OSError as error: return errno.errorcode[error.errno]
print("packet", tried(socket.AF_PACKET, socket.SOCK_RAW, 3), tried(socket.AF_PACKET, socket.SOCK_DGRAM, 3))
print("raw", tried(socket.AF_INET, socket.SOCK_RAW, 1), tried(socket.AF_INET6, socket.SOCK_RAW, 58))
for family in (38, 40, 15, 21, 29, 30, 31, 44, 3, 5, 9): print("family", tried(family, socket.SOCK_STREAM, 0))
link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
link.bind((0, 0))
def ask(kind, body):
    link.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
    return struct.unpack_from("=i", link.recv(4096), 16)[0]
print("address", ask(20, struct.pack("=BBBBI", 2, 24, 0, 0, 1) + struct.pack("=HH4B", 8, 2, 10, 0, 0, 1)))
print("route", ask(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack("=HHI", 8, 4, 1)))
print("link", ask(16, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("=HH4s", 8, 3, b"tap\0")))
s = socket.socket()
for request in (0x8914, 0x8916):
    try: fcntl.ioctl(s, request, struct.pack("16sh22x", b"lo", 0x41)); print("changed")
    except OSError as error: print("interface", errno.errorcode[error.errno])
"""

LOCAL = r"""
import errno, glob, os, socket, stat
for name in ("\0@UNIX@", "/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket",
    "/run/systemd/notify"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try: socket.socket(socket.AF_UNIX, kind).connect(name); print("connected", name)
        except OSError as error: print(errno.errorcode[error.errno])
found = []
for top, folders, names in os.walk("/"):
    if top == "/": folders[:] = [name for name in folders if name not in ("proc", "sys")]
    for name in names:
        path = os.path.join(top, name)
        if stat.S_ISSOCK(os.lstat(path).st_mode): found.append(path)
print("sockets", found)
print(open("/proc/net/unix").read().count("@UNIX@"), "seen")
"""


def _nobody_came(played: Played) -> None:
    for name in ("TCP", "UDP", "UNIX"):
        try:
            came: object = (
                played.host.listeners[name].recv(100) if name == "UDP" else played.host.listeners[name].accept()
            )
        except BlockingIOError:
            continue
        raise AssertionError(f"{came!r} came out of the box by {name}")


CASES = (
    Case(
        name="network_tcp",
        steps=(
            Step(command=python(TCP), prints=REFUSED + UNREACHABLE * 2 + NO_IPV6 * 2 + "['lo']\n"),
            Step(command="(exec 3<>/dev/tcp/127.0.0.1/@TCP@)", fault="command_failed", shows=("refused",)),
        ),
        check=_nobody_came,
    ),
    Case(
        name="network_udp_and_names",
        steps=(Step(command=python(UDP), prints="3\n" + "Network is unreachable\n" * 3 + "no name\n" * 4),),
        check=_nobody_came,
    ),
    Case(
        name="network_raw_and_netlink",
        steps=(
            Step(
                command=python(RAW),
                hides=("opened", "changed"),
                shows=("address -1\n", "route -1\n", "link -1\n", "interface EPERM\ninterface EPERM\n"),
            ),
        ),
    ),
    Case(
        name="network_sockets_of_the_host",
        steps=(
            Step(
                command=python(LOCAL),
                wall_s=60.0,
                prints="ECONNREFUSED\n" * 2 + "ENOENT\n" * 8 + "sockets []\n0 seen\n",
            ),
        ),
        check=_nobody_came,
    ),
)
