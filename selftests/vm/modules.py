"""Kernel modules: which ones, in which order, and their bytes.

modules.dep is read here, on the host, because insmod of busybox takes nothing
but one plain .ko. Soft dependencies are not followed: name them in --modules.
"""

import gzip
import lzma
from dataclasses import dataclass
from pathlib import Path

from process import VmError, run_tool


@dataclass(frozen=True)
class LoadPlan:
    """`files`: modules to load, in this order. `builtin`: names that need no loading."""

    files: tuple
    builtin: tuple


class ModuleIndex:
    """The modules of one kernel; `folder` is its lib/modules/<release>."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._depends = parse_modules_dep(self._read("modules.dep"))
        self._file_of = {module_name(path): path for path in self._depends}
        self._builtin = {module_name(path) for path in self._read("modules.builtin").split()}

    def plan(self, names):
        """What to load for `names`: each module after all that it depends on."""
        order, builtin = [], []
        for name in names:
            name = name.replace("-", "_")
            if name in self._file_of:
                self._append(self._file_of[name], order)
            elif name in self._builtin:
                builtin.append(name)
            else:
                raise VmError(
                    f"--modules: {self._folder.name} has no module {name} (look for its name in "
                    f"{self._folder}/modules.dep)"
                )
        return LoadPlan(tuple(self._folder / path for path in order), tuple(builtin))

    def _append(self, path, order):
        if path in order:
            return
        for dependency in self._depends[path]:
            self._append(dependency, order)
        order.append(path)

    def _read(self, name):
        try:
            return (self._folder / name).read_text()
        except OSError as error:
            raise VmError(
                f"cannot read {self._folder / name} ({error.strerror}); fetch the kernel again: "
                "remove its folder and run again"
            ) from None


def parse_modules_dep(text):
    """Returns {path: [paths it depends on]} in the file's order."""
    depends = {}
    for line in text.splitlines():
        path, separator, rest = line.partition(":")
        if separator:
            depends[path] = rest.split()
    return depends


def module_name(path):
    """`kernel/fs/xfs/xfs.ko.xz` is `xfs`; the kernel takes - and _ as the same."""
    return path.rsplit("/", 1)[-1].split(".ko")[0].replace("-", "_")


def read_module(path):
    """The plain .ko, whatever the package compressed it with."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return run_tool(["zstd", "-dcq"], f"cannot decompress {path.name}", input_data=data)
    return data
