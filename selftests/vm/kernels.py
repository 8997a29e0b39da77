"""The kernels that can be booted, and the folder that keeps them.

Layout of the cache, one folder per suite so that one lock covers it:

    <suite>/lock                 held while anything in the folder changes
    <suite>/apt/                 private apt state
    <suite>/current              symlink to the kernel in use
    <suite>/<release>_<version>/ vmlinux, config, System.map, lib/modules/<release>/
    <suite>/partial.*            being filled; a leftover if nobody holds the lock

A kernel's folder appears by rename and never changes afterwards.
"""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bzimage import extract_vmlinux
from debian import PackageIndex, host_mirror
from process import VmError, run_tool

# The alias is the kernel line that the suite carries today; see check_alias().
ALIASES = {"bookworm": "6.1", "bookworm-backports": "6.12", "trixie-backports": "7.3"}
SUITES = tuple(ALIASES)


@dataclass(frozen=True)
class Wanted:
    """A suite, and the kernel line that the user asked for by alias, if any."""

    suite: str
    line: str = ""


def parse_kernel_option(text):
    """Turns the value of --kernel into a list of Wanted."""
    if text == "all":
        return [Wanted(suite) for suite in SUITES]
    if text in SUITES:
        return [Wanted(text)]
    for suite, line in ALIASES.items():
        if text == line:
            return [Wanted(suite, line)]
    known = ", ".join(f"{suite} ({line})" for suite, line in ALIASES.items())
    raise VmError(f"--kernel={text}: no such kernel; known are {known} and all")


def check_alias(wanted, release):
    """Suites move on: an alias must never silently stand for another kernel line."""
    if wanted.line and not re.match(re.escape(wanted.line) + r"(?![0-9])", release):
        raise VmError(
            f"--kernel={wanted.line}: {wanted.suite} carries {release} now; say "
            f"--kernel={wanted.suite} for that, or correct ALIASES in kernels.py"
        )


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel. Its folder stays until the process that got it ends."""

    suite: str
    release: str
    version: str
    directory: Path

    @property
    def vmlinux(self):
        return self.directory / "vmlinux"

    @property
    def config(self):
        return self.directory / "config"

    @property
    def system_map(self):
        return self.directory / "System.map"

    @property
    def modules(self):
        return self.directory / "lib/modules" / self.release


class KernelCache:
    """Finds kernels in the cache folder and fetches what it does not hold."""

    def __init__(self, root, mirror=None, say=lambda text: None):
        self._root = Path(root)
        self._mirror = mirror
        self._say = say

    def get(self, wanted, update=False):
        """Returns the suite's kernel. Uses the network if it is not cached, or on update."""
        folder = self._writable_folder(wanted.suite)
        with _locked(folder / "lock", self._say):
            kernel = _current(folder, wanted.suite)
            if update or kernel is None:
                kernel = self._fetch(folder, wanted)
            check_alias(wanted, kernel.release)
            _hold(kernel)
            return kernel

    def cached(self, suite):
        """The suite's kernel if it is cached, else None. Never uses the network."""
        return _current(self._root / suite, suite)

    def newest(self, suite):
        """Asks the mirror what the suite carries, without fetching it."""
        folder = self._writable_folder(suite)
        with _locked(folder / "lock", self._say):
            return self._newest(folder, suite)[1]

    def _writable_folder(self, suite):
        folder = self._root / suite
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise VmError(
                f"cannot make the cache folder {folder} ({error.strerror}); "
                "give another with --cache"
            ) from None
        return folder

    def _newest(self, folder, suite):
        index = PackageIndex(suite, folder / "apt")
        index.refresh(self._mirror or host_mirror())
        return index, index.newest_kernel()

    def _fetch(self, folder, wanted):
        index, found = self._newest(folder, wanted.suite)
        check_alias(wanted, found.release)
        target = folder / f"{found.release}_{found.version}"
        _remove_leftovers(folder)
        if not target.exists():
            count = len(found.packages)
            self._say(
                f"fetching {found.release} of {wanted.suite} ({count} package"
                f"{'s' if count > 1 else ''}, {found.size / 1e6:.1f} MB)"
            )
            _build_kernel_folder(index, found, folder, target)
        _point_current_at(folder, target)
        _remove_other_kernels(folder, target)
        return _current(folder, wanted.suite)


@contextlib.contextmanager
def _locked(path, say):
    with open(path, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {path}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _current(folder, suite):
    directory = folder / "current"
    if not directory.exists():
        return None
    directory = directory.resolve()
    release, version = directory.name.split("_", 1)
    return Kernel(suite, release, version, directory)


def _hold(kernel):
    """Keeps --update of another run from removing the folder under this one.

    The descriptor is left open on purpose: the kernel closes it with the process.
    """
    fcntl.flock(os.open(kernel.directory, os.O_RDONLY), fcntl.LOCK_SH)


def _remove_leftovers(folder):
    for leftover in folder.glob("partial.*"):
        shutil.rmtree(leftover)


def _point_current_at(folder, target):
    # A symlink cannot be overwritten, but renamed over.
    fresh = folder / "current.new"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.name)
    fresh.rename(folder / "current")


def _remove_other_kernels(folder, keep):
    for directory in folder.glob("[0-9]*_*"):
        if directory == keep:
            continue
        with contextlib.suppress(BlockingIOError), _exclusive(directory):
            shutil.rmtree(directory)


@contextlib.contextmanager
def _exclusive(directory):
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _build_kernel_folder(index, found, folder, target):
    with tempfile.TemporaryDirectory(prefix="partial.", dir=folder) as partial:
        partial = Path(partial)
        index.download(found, partial)
        unpacked = partial / "unpacked"
        for package in sorted(partial.glob("*.deb")):
            run_tool(["dpkg-deb", "-x", package, unpacked], f"cannot unpack {package.name}")
        built = partial / "kernel"
        _assemble(unpacked, found.release, built)
        built.rename(target)


def _assemble(unpacked, release, built):
    """Brings the packages' two layouts (boot/, and usr/lib/modules/ since 7.x) into one."""
    modules = _first(unpacked, [f"lib/modules/{release}", f"usr/lib/modules/{release}"])
    image = _boot_file(unpacked, modules, "vmlinuz", release)
    (built / "lib/modules").mkdir(parents=True)
    (built / "vmlinux").write_bytes(extract_vmlinux(image.read_bytes(), image.name))
    for name in ("config", "System.map"):
        shutil.copyfile(_boot_file(unpacked, modules, name, release), built / name)
    modules.rename(built / "lib/modules" / release)
    # The packages leave modules.dep to their installation scripts.
    run_tool([_depmod(), "-b", built, release], f"cannot index the modules of {release}")


def _boot_file(unpacked, modules, name, release):
    return _first(unpacked, [f"boot/{name}-{release}", modules.relative_to(unpacked) / name])


def _first(unpacked, candidates):
    for candidate in candidates:
        if (unpacked / candidate).exists():
            return unpacked / candidate
    names = " nor ".join(str(candidate) for candidate in candidates)
    raise VmError(
        f"the kernel's packages hold neither {names}; Debian has changed its packaging and "
        "kernels.py must learn it"
    )


def _depmod():
    """depmod is in /usr/sbin, which an ordinary user's PATH lacks."""
    return shutil.which("depmod", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "depmod"
