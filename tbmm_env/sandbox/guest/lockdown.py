"""What the helper does to itself, and what a child does to itself before it becomes the agent's program.

Standard library only: this file runs inside the box.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
SECCOMP_MODE_FILTER = 2
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what ordinary programs ask for; there is no network to reach."""

NONE = 1 << 29
"""Stands for a call that an architecture does not have."""

# name: (x86_64, aarch64)
DENIED = {
    "_sysctl": (156, NONE), "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "chroot": (161, 51),
    "clock_adjtime": (305, 266), "clock_settime": (227, 112), "create_module": (174, NONE),
    "delete_module": (176, 106), "fanotify_init": (300, 262), "finit_module": (313, 273), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "get_kernel_syms": (177, NONE),
    "get_mempolicy": (239, 236), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioperm": (173, NONE), "iopl": (172, NONE),
    "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "mbind": (237, 235), "migrate_pages": (256, 238), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239), "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42), "open_by_handle_at": (304, 265), "open_tree": (428, 428), "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438), "pivot_root": (155, 41), "pkey_alloc": (330, 289), "pkey_free": (331, 290),
    "pkey_mprotect": (329, 288), "process_madvise": (440, 440), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "query_module": (178, NONE), "ptrace": (101, 117), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "reboot": (169, 142), "request_key": (249, 218), "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "settimeofday": (164, 170), "swapoff": (168, 225), "swapon": (167, 224),
    "sysfs": (139, NONE), "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, NONE),
    "userfaultfd": (323, 282), "ustat": (136, NONE), "vhangup": (153, 58),
}  # fmt: skip
"""What Docker's default policy refuses to a container without capabilities; a test compares the two."""
CLONE, CLONE3 = (56, 220), (435, 435)
NEW_NAMESPACES = 0x7E020000
"""Flags of clone that ask for a new cgroup, IPC, mount, network, pid, user or UTS namespace."""
NOT_ON_HELPER = {
    "prlimit64": (302, 261, 0), "sched_setaffinity": (203, 122, 0), "sched_setattr": (314, 274, 0),
    "sched_setparam": (142, 118, 0), "sched_setscheduler": (144, 119, 0), "setpriority": (141, 140, 1),
}  # fmt: skip
"""Calls that may not name process 1, and which argument names it: else an agent could end or starve its own helper."""
SOCKET = (41, 198)
RT_SIGACTION = {"x86_64": 13, "aarch64": 134}
PRIO_USER = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, first: int, second: object = 0) -> None:
    if _libc.prctl(option, ctypes.c_ulong(first), second, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {first})")


def shield() -> None:
    """Make this process unreadable and deaf: no ptrace, no /proc/1/mem, no signals, no inherited descriptors."""
    os.closerange(3, 1 << 16)
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGHUP,
        signal.SIGTERM,
        signal.SIGTTOU,
        signal.SIGTTIN,
        signal.SIGTSTP,
        signal.SIGPIPE,
    ):
        signal.signal(number, signal.SIG_IGN)


def default_signals() -> None:
    """Undo what the owner's parents ignored or blocked; the C library hides its own signals, so the kernel is asked."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    call = RT_SIGACTION.get(os.uname().machine)
    nothing = ctypes.create_string_buffer(64)  # struct sigaction: default handler, no flags, empty mask
    for number in range(1, 65):
        if number in (signal.SIGKILL, signal.SIGSTOP):
            continue
        if call is not None:
            _libc.syscall(ctypes.c_long(call), number, nothing, None, ctypes.c_size_t(8))
        elif number not in (32, 33):
            signal.signal(number, signal.SIG_DFL)


def _filter(machine: str) -> bytes:
    """Return the seccomp program: a deny list with argument checks, fit for the one architecture of the image."""
    column = ("x86_64", "aarch64").index(machine)
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    program: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4), (equal, 1, 0, ARCHITECTURES[machine]), (give, 0, 0, KILL),
        (load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (give, 0, 0, ERRNO | ENOSYS),
    ]  # fmt: skip
    for numbers in DENIED.values():
        program += [(equal, 0, 1, numbers[column]), (give, 0, 0, ERRNO | EPERM)]
    program += [
        (equal, 0, 1, CLONE3[column]),
        (give, 0, 0, ERRNO | ENOSYS),  # its flags lie in memory; libraries take clone then
        (equal, 0, 4, CLONE[column]),
        (load, 0, 0, 16),
        (any_bit, 0, 1, NEW_NAMESPACES),
        (give, 0, 0, ERRNO | EPERM),
        (give, 0, 0, ALLOW),
    ]
    for name, (*calls, argument) in NOT_ON_HELPER.items():
        checks = [(load, 0, 0, 16 + 8 * argument), (equal, 0, 1, 1), (give, 0, 0, ERRNO | EPERM)]
        if name == "setpriority":
            checks += [(load, 0, 0, 16), (equal, 0, 1, PRIO_USER), (give, 0, 0, ERRNO | EPERM)]
        program += [(equal, 0, len(checks) + 1, calls[column]), *checks, (give, 0, 0, ALLOW)]
    families = [(equal, len(SOCKET_FAMILIES) - index, 0, family) for index, family in enumerate(SOCKET_FAMILIES)]
    program += [
        (equal, 0, len(families) + 2, SOCKET[column]),
        (load, 0, 0, 16),
        *families,
        (give, 0, 0, ERRNO | EAFNOSUPPORT),
    ]
    program += [(give, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def confine(limits: dict[str, int]) -> None:
    """Bound this child for good; called between fork and exec.

    Args:
        limits: names of ``resource`` such as ``RLIMIT_AS`` and their values, set as soft and hard limits.

    Raises:
        OSError: if the kernel refuses a limit or the filter.
    """
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    machine = os.uname().machine
    if machine in ARCHITECTURES:
        code = ctypes.create_string_buffer(_filter(machine))
        program = ctypes.create_string_buffer(struct.pack("@HP", (len(code) - 1) // 8, ctypes.addressof(code)))
        _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))
