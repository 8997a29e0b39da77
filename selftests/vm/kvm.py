"""Whether KVM really boots a kernel here.

A /dev/kvm proves little: on nested hosts it may exist and still not get a stock
kernel going. So it is tried once per kernel and boot of the host.
"""

import json
import os
from pathlib import Path

from initramfs import Contents, build
from qemu import Machine, run_vm

DEVICE = "/dev/kvm"
# A good KVM needs about a second; a wrong "no" costs nothing but speed.
TRIAL_SECONDS = 10


def boots(kernel, cache, tools, say=lambda text: None):
    """True if KVM can be used for this kernel. `cache` is the folder for the answer."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False
    record = Path(cache) / "kvm.json"
    answers = _read(record)
    name = f"{kernel.suite} {kernel.directory.name}"
    if name not in answers:
        say(f"trying {DEVICE} with {kernel.release}, {TRIAL_SECONDS} s at most")
        answers[name] = _try(kernel, tools)
        say(f"{DEVICE} {'boots' if answers[name] else 'does not boot'} {kernel.release}")
        _write(record, answers)
    return answers[name]


def _try(kernel, tools):
    archive = build(kernel, Contents(("true",)), tools)
    machine = Machine(memory=512, kvm=True)
    outcome = run_vm(machine, kernel.vmlinux, archive, TRIAL_SECONDS, lambda data: None)
    return outcome.how == "exit" and outcome.code == 0


def _boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _read(record):
    try:
        content = json.loads(record.read_text())
    except (OSError, ValueError):
        return {}
    return content["answers"] if content.get("boot_id") == _boot_id() else {}


def _write(record, answers):
    fresh = record.with_name(f"kvm.json.{os.getpid()}")
    fresh.write_text(json.dumps({"boot_id": _boot_id(), "answers": answers}, indent=1))
    fresh.rename(record)
