"""System calls, files of the kernel and ways to more rights; the measure is Docker's default seccomp policy."""

from __future__ import annotations

from hostile_case import Case, Played, Step, python

CALLS = r"""
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    return "ok" if libc.syscall(*arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
space = ctypes.create_string_buffer(16)
vector = (ctypes.c_uint64 * 2)(ctypes.addressof(space), 16)
tried = {
    "acct": (163, 0), "add_key": (248, 0, 0, 0, 0, 0), "keyctl": (250, 0, -3, 0), "request_key": (249, 0, 0, 0, 0),
    "bpf": (321, 0, 0, 0), "perf_event_open": (298, 0, 0, -1, -1, 0), "userfaultfd": (323, 0),
    "io_uring_setup": (425, 8, 0), "open_by_handle_at": (304, 0, 0, 0), "init_module": (175, 0, 0, 0),
    "finit_module": (313, 0, 0, 0), "delete_module": (176, 0, 0), "kexec_load": (246, 0, 0, 0, 0),
    "reboot": (169, 0xfee1dead, 672274793, 0), "swapon": (167, 0, 0), "swapoff": (168, 0), "chroot": (161, b"/tmp"),
    "quotactl": (179, 0, 0, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0), "umount": (166, b"/task", 0),
    "mknod": (133, b"/tmp/n", 0o60644, 0xfe00),
    "pivot_root": (155, b".", b"."), "fsopen": (430, b"tmpfs", 0), "open_tree": (428, -100, b"/", 1),
    "move_mount": (429, 0, 0, 0, 0, 0), "mount_setattr": (442, -100, b"/", 0, 0, 0), "unshare": (272, 0x10000000),
    "setns": (308, 0, 0), "settimeofday": (164, 0, 0), "clock_settime": (227, 0, 0), "sethostname": (170, b"x", 1),
    "setdomainname": (171, b"x", 1), "iopl": (172, 3), "ioperm": (173, 0, 1, 1), "vhangup": (153,),
    "syslog": (103, 3, 0, 0), "kcmp": (312, 1, os.getpid(), 1, 0, 0),
    "lookup_dcookie": (212, 0, 0, 0), "x32": (0x40000000 + 39,), "setuid": (105, 0), "setgroups": (116, 0, 0),
    "ptrace": (101, 16, 1, 0, 0), "seize": (101, 0x4206, 1, 0, 0),
    "process_vm_readv": (310, 1, vector, 1, vector, 1, 0),
    "process_vm_writev": (311, 1, vector, 1, vector, 1, 0),
    "prlimit": (302, 1, 0, 0, 0), "setpriority": (141, 0, 1, 19),
    "setpriority_user": (141, 2, 0, 19), "sched_setaffinity": (203, 1, 8, 0), "sched_setscheduler": (144, 1, 0, 0),
    "sched_setparam": (142, 1, 0), "sched_setattr": (314, 1, 0, 0), "move_pages": (279, 1, 0, 0, 0, 0, 0),
    "migrate_pages": (256, 1, 0, 0, 0), "process_madvise": (440, libc.syscall(434, 1, 0), 0, 0, 21, 0),
    "pidfd_getfd": (438, libc.syscall(434, 1, 0), 0, 0),
}
for name, arguments in tried.items():
    print(name, call(*arguments))
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x04000000, 0x08000000, 0x02000000):
    child = libc.syscall(56, flag | 17, 0, 0, 0, 0)
    if child == 0: os._exit(0)
    print("clone", hex(flag), "ok" if child > 0 else errno.errorcode[ctypes.get_errno()])
arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
child = libc.syscall(435, arguments, 88)
if child == 0: os._exit(0)
print("clone3", "ok" if child > 0 else errno.errorcode[ctypes.get_errno()])
"""
OWN = r"""
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(302, 0, 7, 0, 0), len(os.sched_getaffinity(0)) > 0, -os.nice(0) + os.nice(1))
print(libc.syscall(160, 7, 0) < 0)
thread = threading.Thread(target=lambda: print("thread")); thread.start(); thread.join()
import subprocess, fcntl, mmap, tempfile
print(subprocess.run(["echo", "child"], capture_output=True).stdout)
with tempfile.TemporaryFile() as file: fcntl.flock(file, fcntl.LOCK_EX); print("locked")
"""

WRITABLE = r"""
import os
opened = []
for top, folders, names in os.walk("/proc/1"):
    folders[:] = [name for name in folders if name not in ("task",) or top == "/proc/1"]
    for name in names + folders:
        path = os.path.join(top, name)
        for flag in (os.O_WRONLY, os.O_RDWR):
            try: descriptor = os.open(path, flag | os.O_NONBLOCK)
            except OSError: continue
            try: os.write(descriptor, b"1\n"); opened.append(path)
            except OSError: pass
            os.close(descriptor)
print(sorted(set(opened)))
for name in ("fd", "root", "cwd", "exe", "mem", "maps", "environ", "auxv", "syscall", "stack", "io", "task/1/fd",
    "task/1/mem", "ns/net", "map_files", "fdinfo", "pagemap", "task/1/cwd", "task/1/environ", "fd/0", "fd/1"):
    path = "/proc/1/" + name
    for how in (os.listdir, os.readlink, lambda p: open(p, "rb").read(1)):
        try: print("read", path, how(path))
        except OSError: pass
for path in ("/proc/self/mem",):
    with open(path, "r+b", buffering=0) as file: print("own", file.seekable())
"""

KERNEL_FILES = r"""
import os, re, stat
def tried(path, flags):
    try: descriptor = os.open(path, flags | os.O_NONBLOCK)
    except OSError: return False
    if flags == os.O_WRONLY and stat.S_ISCHR(os.fstat(descriptor).st_mode): return False  # masked by /dev/null
    try: return len(os.read(descriptor, 64)) > 0 if flags == os.O_RDONLY else True
    except OSError: return False
    finally: os.close(descriptor)
for path in ("/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/net/tun",
    "/dev/loop-control", "/dev/console", "/sys/kernel/debug", "/sys/firmware/dmi/tables/DMI", "/etc/shadow",
    "/proc/kpageflags", "/proc/vmallocinfo"):
    if tried(path, os.O_RDONLY): print("read", path)
for path in ("/proc/sysrq-trigger", "/proc/kcore", "/dev/mem", "/proc/kmsg", "/proc/1/oom_score_adj",
    "/proc/scsi/scsi", "/proc/mtrr", "/proc/latency_stats", "/proc/timer_list", "/proc/acpi/wakeup"):
    if tried(path, os.O_WRONLY): print("written", path)
# of the box's own namespaces
own = re.compile("/proc/sys/(fs/mqueue/|kernel/(auto_)?(msg|shm|sem|pid_max|ns_last_pid))")
for top in ("/proc/sys", "/sys"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.access(path, os.W_OK) and tried(path, os.O_WRONLY) and not own.match(path): print("written", path)
        if top == "/sys" and os.access(folder, os.W_OK): print("writable", folder)
try: symbols = {line.split()[0] for line in open("/proc/kallsyms")}
except OSError: symbols = {"0"}
print("symbols", all(int(address, 16) == 0 for address in symbols))
print("devices", [f"{top}/{name}" for top, _, names in os.walk("/dev") for name in names
    if stat.S_ISBLK(os.lstat(f"{top}/{name}").st_mode)])
print("processes", len([name for name in os.listdir("/proc") if name.isdigit()]) < 10)
"""

SETUID = r"""
find / -xdev \( -perm /6000 -o -type b \) 2> /dev/null
find / -xdev -type f \( -perm -0002 \) ! -path '/workspace/*' ! -path '/tmp/*' 2> /dev/null
cp /usr/bin/id ./id; chmod 6755 id; ./id -u; ./id -ru
grep -c nosuid <(grep -E ' (/workspace|/tmp|/dev/shm) ' /proc/mounts)
chown 0:0 id 2> /dev/null || echo kept
setpriv --reuid 0 true 2> /dev/null || echo kept; su root -c true 2> /dev/null < /dev/null || echo kept
mknod /tmp/disk b 254 0 2> /dev/null || echo kept; mknod /tmp/zero c 1 5 2> /dev/null || echo kept
"""

DESTROY = "rm -rf --no-preserve-root / 2> /dev/null; rm -rf /usr /etc /task/* /* 2> /dev/null"


def _denied(played: Played) -> None:
    allowed = [line for line in played.text(0).splitlines() if line.endswith(" ok")]
    assert allowed == []
    assert len(played.text(0).splitlines()) > 60


CASES = (
    Case(name="privilege_system_calls", steps=(Step(command=python(CALLS)),), check=_denied),
    Case(
        name="privilege_watching_by_fanotify",
        steps=(
            Step(
                command=python(
                    "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                    "print(libc.syscall(300, 0x200, 0), ctypes.get_errno())"
                ),
                prints="-1 1\n",
            ),
        ),
    ),
    Case(
        name="privilege_what_programs_need_is_allowed",
        steps=(Step(command=python(OWN), prints="0 True 1\nTrue\nthread\nb'child\\n'\nlocked\n"),),
    ),
    Case(
        name="privilege_namespaces_by_programs",
        steps=(
            *[
                Step(command=command, fault="command_failed")
                for command in (
                    "unshare -U true",
                    "unshare -r true",
                    "unshare -m true",
                    "unshare -n true",
                    "unshare -pf true",
                    "unshare -i true",
                    "nsenter -t 1 -m true",
                    "mount -t tmpfs x /tmp",
                    "mount -o remount,rw /",
                    "mount --bind /tmp /task",
                    "umount /task",
                    "umount -l /workspace",
                    "chroot / true",
                )
            ],
        ),
    ),
    Case(
        name="privilege_status_of_processes",
        steps=(
            Step(
                command="grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -d '\\t'; id -u; id -G",
                prints="".join(f"Cap{kind}:{'0' * 16}\n" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
                + "NoNewPrivs:1\nSeccomp:2\n10001\n10001\n",
            ),
            Step(command="cat /proc/self/oom_score_adj", prints="1000\n"),
        ),
    ),
    Case(
        name="privilege_setuid_and_device_files",
        steps=(Step(command=SETUID, prints="10001\n10001\n3\n" + "kept\n" * 5, wall_s=60.0),),
    ),
    Case(
        name="privilege_forging_through_the_helper",
        steps=(
            Step(command=python(WRITABLE), prints="[]\nown True\n"),
            *[
                Step(command=command, fault="command_failed")
                for command in (
                    "prlimit --pid 1 --nofile=0",
                    "prlimit --pid 1 --cpu=0",
                    "prlimit --pid 1 --as=1",
                    "renice 19 1",
                    "renice -n 19 -u agent",
                    "chrt -i -p 0 1",
                    "taskset -p 1 1",
                    "echo -1000 > /proc/1/oom_score_adj",
                    "head -c 1 < /proc/1/fd/0",
                    "ls /proc/1/root/",
                    "cd /proc/1/cwd",
                )
            ],
            Step(command="for n in $(seq 1 31) $(seq 34 64); do kill -$n 1; done", prints=""),
            Step(command="echo fine", prints="fine\n"),
        ),
    ),
    Case(
        name="privilege_files_of_the_kernel",
        steps=(Step(command=python(KERNEL_FILES), wall_s=60.0, prints="symbols True\ndevices []\nprocesses True\n"),),
    ),
    Case(
        name="privilege_destroy_everything",
        files={"kept": b"kept"},
        steps=(
            Step(command=DESTROY, wall_s=60.0, fault=("none", "command_failed")),
            Step(
                command="cat /task/kept; ls /usr/bin | wc -l | tr -d '0-9'; python3 -c 'print(1)'", prints="kept\n1\n"
            ),
            Step(command="check", shows=("checked: missing",)),
        ),
        check=lambda played: _same_image(played),
    ),
)


def _same_image(played: Played) -> None:
    """Nothing in the image, which every box shares, has changed since this box was started."""
    changes = played.host.image_changes_ns()
    assert len(changes) > 5000
    assert max(changes) < played.started_ns
