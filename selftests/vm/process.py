"""Child processes that never outlive the runner."""

import ctypes
import os
import signal
import subprocess

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class VmError(Exception):
    """Something the user can act on: names the thing, the cause and the remedy."""


def die_with_parent():
    """Runs between fork and exec of a child.

    A runner that is killed with SIGKILL cannot clean up, so the kernel has to
    end its children.
    """
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_tool(argv, failure, remedy="", input_data=None, **popen_options):
    """Runs a host tool and returns its stdout as bytes.

    The error text is `failure`, what the tool said, and `remedy`.
    """
    try:
        done = subprocess.run(
            argv,
            input=input_data,
            stdin=subprocess.DEVNULL if input_data is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,
            **popen_options,
        )
    except FileNotFoundError:
        raise VmError(f"{failure}: {argv[0]} is not installed; {_package(argv[0])}") from None
    if done.returncode != 0:
        advice = f"\n  {remedy}" if remedy else ""
        raise VmError(f"{failure}: {_what_it_said(argv[0], done)}{advice}")
    return done.stdout


_PACKAGE_OF_TOOL = {
    "apt-get": "apt",
    "apt-cache": "apt",
    "cc": "gcc and libc6-dev",
    "depmod": "kmod",
    "dpkg-deb": "dpkg",
    "ldd": "libc-bin",
    "lz4": "lz4",
    "qemu-system-x86_64": "qemu-system-x86",
    "zstd": "zstd",
}


def _package(tool):
    package = _PACKAGE_OF_TOOL.get(os.path.basename(tool))
    return f"install the Debian package {package}" if package else "install it"


def _what_it_said(tool, done):
    text = (done.stderr or done.stdout).decode(errors="replace").strip()
    lines = text.splitlines()[-10:]
    if not lines:
        return f"{tool} ended with status {done.returncode}"
    return "\n  ".join(lines)
