"""Runs one VM: qemu's command line, its three channels, its end."""

import os
import selectors
import subprocess
import tempfile
import time
from dataclasses import dataclass

from console import Console
from process import VmError, die_with_parent

QEMU = "qemu-system-x86_64"

# The same numbers are in vmexit.c.
RESULT_PORT = 0xE9
POWER_PORT = 0xF4


@dataclass(frozen=True)
class Machine:
    cpus: int = 1
    memory: int = 2048
    kvm: bool = False
    icount: bool = False

    @property
    def accelerator(self):
        if self.icount:
            return "tcg, icount"
        return "kvm" if self.kvm else "tcg"


@dataclass
class Outcome:
    """How a VM ended. `how` is exit, signal, error or, without a result, empty."""

    console: Console
    how: str = ""
    code: int = 0
    reason: str = ""
    timed_out: bool = False
    boot_seconds: float = 0.0
    seconds: float = 0.0
    qemu_said: str = ""

    def take(self, line):
        """Takes one line of vmexit's report."""
        word, _, rest = line.partition(" ")
        if word == "error":
            self.how, self.reason = word, rest
        elif word in ("exit", "signal"):
            self.how, self.code = word, int(rest)


def command_line(machine, vmlinux, initrd, console, output, result):
    """qemu's arguments. The last four are numbers of inherited file descriptors."""
    return [
        QEMU,
        *("-machine", "q35"),
        *_accelerator_options(machine),
        *("-smp", str(machine.cpus)),
        *("-m", f"{machine.memory}M"),
        # Without this a network card appears, whose boot ROM costs seconds.
        "-nodefaults",
        "-no-reboot",
        *("-display", "none"),
        *("-monitor", "none"),
        *("-kernel", str(vmlinux)),
        *("-initrd", f"/dev/fd/{initrd}"),
        # loglevel=5 shows warnings, which `quiet` would hide from the check for them.
        *("-append", "console=ttyS0 loglevel=5 panic=-1"),
        *("-serial", f"file:/dev/fd/{console}"),
        *("-serial", f"file:/dev/fd/{output}"),
        *("-chardev", f"file,id=result,path=/dev/fd/{result}"),
        *("-device", f"isa-debugcon,iobase={RESULT_PORT:#x},chardev=result"),
        *("-device", f"isa-debug-exit,iobase={POWER_PORT:#x},iosize=1"),
    ]


def _accelerator_options(machine):
    if machine.kvm and not machine.icount:
        return ["-accel", "kvm", "-cpu", "host"]
    # cmpxchg16b of qemu 7.2's TCG corrupts the flags, and 6.12 then oopses in its
    # allocator: without cx16 the kernel does not use the instruction.
    options = ["-accel", "tcg,thread=single", "-cpu", "max,-cx16"]
    if machine.icount:
        options += ["-icount", "shift=0,sleep=off"]
    return options


def run_vm(machine, vmlinux, archive, timeout, on_output, on_ready=None, on_console=None):
    """Boots and waits for the end.

    `on_output` gets the command's output as it comes, `on_console` the kernel's.
    Nothing is left on disk, whatever ends this process: the initramfs is a
    nameless file, and qemu dies with its parent.
    """
    with tempfile.TemporaryFile() as initrd, tempfile.TemporaryFile() as qemu_log:
        archive.write(initrd)
        initrd.flush()
        channels = _Channels(on_output, on_ready, Console(on_console))
        process = _start(machine, vmlinux, initrd, qemu_log, channels)
        try:
            channels.follow(timeout)
        finally:
            process.kill()
            process.wait()
            channels.close()
        qemu_log.seek(0)
        channels.outcome.qemu_said = qemu_log.read().decode(errors="replace").strip()
        return channels.outcome


def _start(machine, vmlinux, initrd, qemu_log, channels):
    descriptors = (initrd.fileno(), *channels.write_ends())
    try:
        return subprocess.Popen(
            command_line(machine, vmlinux, *descriptors),
            stdin=subprocess.DEVNULL,
            stdout=qemu_log,
            stderr=qemu_log,
            pass_fds=descriptors,
            # Ctrl-C is for the runner: it kills qemu, after which it can still report.
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    except FileNotFoundError:
        remedy = "install the Debian package qemu-system-x86"
        raise VmError(f"{QEMU} is not installed; {remedy}") from None
    finally:
        channels.close_write_ends()


@dataclass
class _Channel:
    take: object
    read_end: int = -1
    write_end: int = -1

    def __post_init__(self):
        self.read_end, self.write_end = os.pipe()


class _Channels:
    """The guest's console, the command's output and vmexit's report, each a pipe."""

    def __init__(self, on_output, on_ready, console):
        self.outcome = Outcome(console)
        self._on_ready = on_ready
        self._report = b""
        self._started = time.monotonic()
        self._channels = [
            _Channel(console.feed),
            _Channel(on_output),
            _Channel(self._take_report),
        ]

    def write_ends(self):
        return [channel.write_end for channel in self._channels]

    def close_write_ends(self):
        for channel in self._channels:
            os.close(channel.write_end)

    def follow(self, timeout):
        """Passes on what comes until qemu has ended or the time is up."""
        deadline = self._started + timeout
        with selectors.DefaultSelector() as selector:
            for channel in self._channels:
                selector.register(channel.read_end, selectors.EVENT_READ, channel)
            while selector.get_map():
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    self.outcome.timed_out = True
                    break
                for key, _ in selector.select(remaining):
                    self._pass_on(key.data, selector)
        self.outcome.seconds = time.monotonic() - self._started
        self.outcome.console.close()

    def close(self):
        for channel in self._channels:
            os.close(channel.read_end)

    @staticmethod
    def _pass_on(channel, selector):
        data = os.read(channel.read_end, 1 << 16)
        if data:
            channel.take(data)
        else:
            selector.unregister(channel.read_end)

    def _take_report(self, data):
        *lines, self._report = (self._report + data).split(b"\n")
        for line in lines:
            if line == b"ready":
                self.outcome.boot_seconds = time.monotonic() - self._started
                if self._on_ready:
                    self._on_ready(self.outcome.boot_seconds)
            else:
                self.outcome.take(line.decode(errors="replace"))
