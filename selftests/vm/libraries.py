"""The shared libraries a program needs in the guest."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from process import VmError, die_with_parent

# The guest has no ld.so.cache; the loader finds libraries only here by itself.
LOADER_FOLDERS = tuple(
    prefix + folder
    for folder in ("/lib", "/lib64", "/lib/x86_64-linux-gnu")
    for prefix in ("", "/usr")
)


@dataclass
class Libraries:
    """Library files by where they go: `fixed` keep their path, `loose` are found by name."""

    fixed: set = field(default_factory=set)
    loose: dict = field(default_factory=dict)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def is_static(path):
    return not _ldd(path, [])


def closure(files, extra_libraries=()):
    """Libraries that the ELF files need, the loader included.

    `extra_libraries` are found too, wherever they are: the caller brings them.
    """
    found = Libraries()
    search = sorted({str(Path(library).resolve().parent) for library in extra_libraries})
    for file in files:
        for name, path in _ldd(file, search):
            if name is None or os.path.dirname(path) in LOADER_FOLDERS:
                found.fixed.add(path)
            else:
                _add_loose(found.loose, name, path)
    return found


def _add_loose(loose, name, path):
    other = loose.setdefault(name, path)
    if os.path.realpath(other) != os.path.realpath(path):
        raise VmError(
            f"two libraries are called {name}: {other} and {path}; the guest can hold one, so "
            "run the programs in VMs of their own"
        )


def _ldd(file, search):
    """What parse_ldd() yields for the file. `search` holds further library folders."""
    environment = dict(os.environ, LC_ALL="C")
    if search:
        inherited = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = ":".join(search + ([inherited] if inherited else []))
    done = subprocess.run(
        ["ldd", os.path.abspath(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        preexec_fn=die_with_parent,
    )
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0 and "not a dynamic executable" not in text:
        raise VmError(f"cannot list the libraries of {file}: {text.strip()}")
    return list(parse_ldd(text, file))


def parse_ldd(text, file):
    """Yields (name, path); name is None for what is asked for by its path, as the loader is.

    Lines are `name => path (address)`, `path (address)` or `vdso (address)`.
    """
    for line in text.splitlines():
        if "=> not found" in line:
            name = line.split()[0]
            raise VmError(
                f"{file} needs {name}, which is not found on this host; install it, or give it "
                f"with --file=PATH/{name}"
            )
        match = re.match(r"\s*(?:(\S+) => )?(/.*) \(0x[0-9a-f]+\)$", line)
        if match:
            yield match.groups()
