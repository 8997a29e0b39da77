"""Finds and fetches kernel packages of one Debian suite.

Everything apt writes goes to a private state, and hooks and pins of the host's
configuration are switched off: the host's apt must not notice, nor matter.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from process import VmError, run_tool

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
META_PACKAGE = "linux-image-cloud-amd64"

_APT_CONF = """\
Dir::State "{directory}/state";
Dir::State::status "{directory}/state/status";
Dir::Cache "{directory}/cache";
Dir::Etc::sourcelist "{directory}/suite.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
#clear APT::Default-Release;
#clear APT::Architectures;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
"""

_SOURCES = """\
Types: deb
URIs: {mirror}
Suites: {suite}
Components: main
Architectures: amd64
Signed-By: {keyring}
"""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    size: int


@dataclass(frozen=True)
class KernelPackages:
    """What has to be unpacked to get one kernel. `release` is its `uname -r`."""

    release: str
    version: str
    packages: tuple

    @property
    def size(self):
        return sum(package.size for package in self.packages)


class PackageIndex:
    """The package index of one suite, kept below `directory`."""

    def __init__(self, suite, directory):
        self._suite = suite
        self._directory = Path(directory)
        self._conf = self._directory / "apt.conf"

    def refresh(self, mirror):
        """Downloads the index. The only other step that needs the network is download()."""
        self._write_configuration(mirror)
        self._apt(
            "apt-get",
            ["-q", "update"],
            f"cannot read the package index of {self._suite} from {mirror}",
            "check the network, give another mirror with --mirror, or with --cache a folder that "
            "already holds this suite's kernel",
        )

    def newest_kernel(self):
        """Follows the meta package, which is the archive's own word on what is newest."""
        meta = self._show(META_PACKAGE)
        match = re.search(r"\blinux-image-(\d\S*) \(= ([^)]+)\)", meta.get("Depends", ""))
        if not match:
            raise VmError(
                f"{self._suite}: {META_PACKAGE} names no kernel (Depends: "
                f"{meta.get('Depends', 'nothing')}); the suite has changed its packaging and "
                "debian.py must learn it"
            )
        release, version = match.groups()
        return KernelPackages(release, version, tuple(self._closure(release)))

    def download(self, kernel, folder):
        """Puts the kernel's .deb files into folder, verified by apt."""
        wanted = [f"{package.name}={package.version}" for package in kernel.packages]
        self._apt(
            "apt-get",
            ["-q", "download", *wanted],
            f"cannot download {kernel.release} of {self._suite}",
            "check the network and the free space, and run again",
            cwd=folder,
        )

    def _closure(self, release):
        """The kernel's packages; since 7.x image, binary, modules and base are split."""
        pending, seen = [f"linux-image-{release}"], set()
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            fields = self._show(name)
            yield Package(name, fields["Version"], int(fields["Size"]))
            depends = re.split(r"[,|]\s*", fields.get("Depends", ""))
            names = [depend.split()[0] for depend in depends if depend.strip()]
            pending += [n for n in names if n.startswith("linux-") and n.endswith(f"-{release}")]

    def _show(self, name):
        text = self._apt(
            "apt-cache",
            ["show", "--no-all-versions", name],
            f"{self._suite} carries no package {name}",
            "give another --kernel",
        ).decode(errors="replace")
        return dict(re.findall(r"^([A-Za-z-]+): (.*)$", text.split("\n\n")[0], re.MULTILINE))

    def _write_configuration(self, mirror):
        if not os.path.exists(KEYRING):
            raise VmError(
                f"{KEYRING} is missing, so packages of {self._suite} cannot be verified; "
                "install the Debian package debian-archive-keyring"
            )
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (self._directory / folder).mkdir(parents=True, exist_ok=True)
        # Without a status file of its own apt would mix in the host's packages.
        (self._directory / "state/status").touch()
        self._conf.write_text(_APT_CONF.format(directory=self._directory))
        (self._directory / "suite.sources").write_text(
            _SOURCES.format(mirror=mirror, suite=self._suite, keyring=KEYRING)
        )

    def _apt(self, tool, arguments, failure, remedy, **options):
        # -c is read after the host's configuration, so that its #clear lines work.
        environment = dict(os.environ, LC_ALL="C")
        argv = [tool, "-c", str(self._conf), *arguments]
        return run_tool(argv, failure, remedy, env=environment, **options)


def host_mirror():
    """The mirror of Debian's main archive that this host's apt is configured with."""
    mirror = _mirror_of_release_files() or _mirror_of_sources()
    if not mirror:
        raise VmError(
            "this host's apt names no mirror of the Debian main archive; give one with --mirror=URI"
        )
    return mirror


def _mirror_of_release_files():
    """Origin and label are certain, but known only after the host's first apt-get update."""
    for uri, origin, label in _index_targets([], "$(REPO_URI)", "$(ORIGIN)", "$(LABEL)"):
        if origin == "Debian" and label == "Debian":
            return uri
    return None


def _mirror_of_sources():
    """Without index files: the line whose suite is this host's own release."""
    codename = _host_codename()
    for uri, release, component in _index_targets(
        ["--no-release-info"], "$(REPO_URI)", "$(RELEASE)", "$(COMPONENT)"
    ):
        if release == codename and component == "main":
            return uri
    return None


def _index_targets(options, *fields):
    query = ["indextargets", "--format", "|".join(fields), "Created-By: Packages"]
    text = run_tool(
        ["apt-get", *options, *query],
        "cannot ask apt for this host's mirror",
        "give one with --mirror=URI",
    )
    rows = (line.split("|") for line in text.decode(errors="replace").splitlines())
    return [row for row in rows if len(row) == len(fields)]


def _host_codename():
    try:
        text = Path("/etc/os-release").read_text()
    except OSError:
        return None
    match = re.search(r'^VERSION_CODENAME="?(\w+)"?$', text, re.MULTILINE)
    return match.group(1) if match else None
