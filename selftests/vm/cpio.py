"""Writes initramfs archives (cpio newc; Documentation/driver-api/early-userspace/
buffer-format.rst in the kernel).

Written here rather than by cpio(1), which would need a copy of every file laid
out as in the guest, and root for the device nodes.
"""

import os
import shutil
import stat
from dataclasses import dataclass

from process import VmError


@dataclass(frozen=True)
class _Node:
    mode: int
    data: bytes = b""
    source: str = ""  # a host file that holds the data instead
    device: tuple = (0, 0)

    def size(self):
        return os.path.getsize(self.source) if self.source else len(self.data)


class Archive:
    """A file tree. Paths are absolute, as in the guest; parents appear by themselves."""

    def __init__(self):
        # The kernel gives / the mode that the archive says; 0755 lets other users in.
        self._nodes = {"/": _Node(stat.S_IFDIR | 0o755)}

    def add_directory(self, path, mode=0o755):
        node = _Node(stat.S_IFDIR | mode)
        if path in self._nodes and stat.S_ISDIR(self._nodes[path].mode):
            # A parent that appeared by itself may still be given its mode.
            self._nodes[path] = node
        else:
            self._add(path, node)

    def add_bytes(self, path, data, mode=0o644):
        self._add(path, _Node(stat.S_IFREG | mode, data=data))

    def add_file(self, path, source, mode=None):
        """The host file `source`, with its own mode if none is given."""
        if mode is None:
            mode = stat.S_IMODE(os.stat(source).st_mode)
        self._add(path, _Node(stat.S_IFREG | mode, source=os.fspath(source)))

    def add_symlink(self, path, target):
        self._add(path, _Node(stat.S_IFLNK | 0o777, data=os.fsencode(target)))

    def add_character_device(self, path, major, minor, mode=0o600):
        self._add(path, _Node(stat.S_IFCHR | mode, device=(major, minor)))

    def __contains__(self, path):
        return path in self._nodes

    def write(self, out):
        """Writes the archive to a binary file."""
        for number, (path, node) in enumerate(self._nodes.items(), start=1):
            _write_member(out, path.lstrip("/") or ".", node, number)
        _write_member(out, "TRAILER!!!", _Node(0), 0)

    def _add(self, path, node):
        if path in self._nodes and self._nodes[path] != node:
            raise VmError(
                f"two different things are to be {path} in the guest "
                f"({self._describe(path)} and {node.source or 'another'}); give one another name"
            )
        parent = os.path.dirname(path)
        if parent not in self._nodes:
            self.add_directory(parent)
        if not stat.S_ISDIR(self._nodes[parent].mode):
            raise VmError(f"{path} cannot be in the guest: {parent} is no folder there")
        self._nodes[path] = node

    def _describe(self, path):
        return self._nodes[path].source or "a part of the guest itself"


def _write_member(out, name, node, number):
    size = node.size()
    if size > 0xFFFFFFFF:
        raise VmError(f"{name}: {size} bytes are more than an initramfs can hold (4 GiB)")
    encoded = os.fsencode(name) + b"\0"
    links = 2 if stat.S_ISDIR(node.mode) else 1
    # Owner 0:0 and time 0: the guest does not depend on who built the archive, or when.
    fields = (number, node.mode, 0, 0, links, 0, size, 0, 0, *node.device, len(encoded), 0)
    header = b"070701" + b"".join(b"%08x" % value for value in fields)
    out.write(_padded(header + encoded))
    if node.source:
        _copy(node.source, size, out)
        out.write(bytes(-size % 4))
    else:
        out.write(_padded(node.data))


def _copy(source, size, out):
    with open(source, "rb") as file:
        shutil.copyfileobj(file, out, 1 << 20)
        if file.tell() != size:
            raise VmError(f"{source} changed while it was copied; run again when its build is done")


def _padded(data):
    return data + bytes(-len(data) % 4)
