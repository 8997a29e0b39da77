"""Which kernel, from which packages, kept where."""

import bz2
import gzip
import lzma
import multiprocessing
import os
import shutil
import struct
import time
from unittest import mock

import debian
import kernels
import modules
from bzimage import extract_vmlinux
from process import VmError, run_tool
from support import TestCase, with_tool


class KernelOptionTest(TestCase):
    def test_names(self):
        cases = {
            "bookworm": [("bookworm", "")],
            "bookworm-backports": [("bookworm-backports", "")],
            "6.1": [("bookworm", "6.1")],
            "6.12": [("bookworm-backports", "6.12")],
            "7.3": [("trixie-backports", "7.3")],
            "all": [(suite, "") for suite in kernels.SUITES],
        }
        for text, want in cases.items():
            got = [(w.suite, w.line) for w in kernels.parse_kernel_option(text)]
            self.assertEqual(got, want, text)

    def test_unknown_name_is_refused_with_the_known_ones(self):
        for text in ("6.13", "6", "6.1.0", "sid", ""):
            self.assert_refused("trixie-backports (7.3)", kernels.parse_kernel_option, text)

    def test_alias_matches_whole_numbers_only(self):
        cases = (
            ("6.1", "6.1.0-50-cloud-amd64", True),
            ("6.1", "6.1-cloud-amd64", True),
            ("6.1", "6.12.95+deb12-cloud-amd64", False),
            ("6.1", "6.10.3-cloud-amd64", False),
            ("7.3", "7.3.4+deb13-cloud-amd64", True),
            ("7.3", "7.4.1+deb13-cloud-amd64", False),
            ("7.3", "17.3.1-cloud-amd64", False),
            ("6.1", "601.0-cloud-amd64", False),
        )
        for line, release, fits in cases:
            wanted = kernels.Wanted("some-suite", line)
            if fits:
                kernels.check_alias(wanted, release)
            else:
                self.assert_refused(
                    f"some-suite carries {release} now", kernels.check_alias, wanted, release
                )

    def test_suite_name_takes_any_kernel(self):
        kernels.check_alias(kernels.Wanted("bookworm"), "9.9.9-cloud-amd64")


class PackageIndexTest(TestCase):
    """The meta package leads to the kernel's packages, split or not."""

    SPLIT = {
        "linux-image-cloud-amd64": {
            "Depends": "linux-base-cloud-amd64 (= 7.3.4-1), "
            "linux-image-7.3.4-cloud-amd64 (= 7.3.4-1), linux-modules-cloud-amd64 (= 7.3.4-1)"
        },
        "linux-image-7.3.4-cloud-amd64": {
            "Version": "7.3.4-1",
            "Size": "10",
            "Depends": "dracut | linux-initramfs-tool, linux-binary-7.3.4-cloud-amd64 (= 7.3.4-1), "
            "linux-modules-7.3.4-cloud-amd64 (= 7.3.4-1)",
        },
        "linux-binary-7.3.4-cloud-amd64": {
            "Version": "7.3.4-1",
            "Size": "200",
            "Depends": "linux-base-7.3.4-cloud-amd64 (= 7.3.4-1)",
        },
        "linux-modules-7.3.4-cloud-amd64": {"Version": "7.3.4-1", "Size": "3000"},
        "linux-base-7.3.4-cloud-amd64": {"Version": "7.3.4-1", "Size": "40000"},
    }

    def newest(self, packages):
        index = debian.PackageIndex("some-suite", self.folder)
        with mock.patch.object(index, "_show", packages.__getitem__):
            return index.newest_kernel()

    def test_split_packages(self):
        found = self.newest(self.SPLIT)
        self.assertEqual((found.release, found.version), ("7.3.4-cloud-amd64", "7.3.4-1"))
        self.assertEqual(
            {package.name.split("-")[1] for package in found.packages},
            {"image", "binary", "modules", "base"},
        )
        self.assertEqual(found.size, 43210)

    def test_single_package(self):
        found = self.newest(
            {
                "linux-image-cloud-amd64": {
                    "Depends": "linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)"
                },
                "linux-image-6.1.0-50-cloud-amd64": {
                    "Version": "6.1.176-1",
                    "Size": "7",
                    "Depends": "kmod, linux-base (>= 4.3~), initramfs-tools | linux-initramfs-tool",
                },
            }
        )
        self.assertEqual([p.name for p in found.packages], ["linux-image-6.1.0-50-cloud-amd64"])

    def test_unexpected_meta_package_is_refused(self):
        self.assert_refused(
            "some-suite: linux-image-cloud-amd64 names no kernel",
            self.newest,
            {"linux-image-cloud-amd64": {"Depends": "something-else"}},
        )

    def test_unreachable_mirror_names_suite_and_remedy(self):
        index = debian.PackageIndex("bookworm", self.folder / "apt")
        mirror = f"file:{self.folder}/no-mirror"
        for part in ("package index of bookworm", mirror, "--mirror", "--cache"):
            self.assert_refused(part, index.refresh, mirror)


class FakeIndex:
    """Stands for PackageIndex: packages made by dpkg-deb, no network."""

    packages = None  # folder of .deb files
    release = "6.1.0-1-test"
    version = "6.1.1-1"
    downloads = None  # one line per download
    fail = False

    def __init__(self, suite, directory):
        pass

    def refresh(self, mirror):
        pass

    def newest_kernel(self):
        cls = type(self)
        return debian.KernelPackages(cls.release, cls.version, (debian.Package("k", cls.version, 1),))

    def download(self, kernel, folder):
        with open(self.downloads, "a") as log:
            log.write(f"{kernel.release}\n")
        if self.fail:
            (folder / "half.deb").write_bytes(b"half")
            raise VmError("the network is gone")
        time.sleep(0.2)
        for package in self.packages.glob("*.deb"):
            shutil.copy(package, folder)


class KernelCacheTest(TestCase):
    def setUp(self):
        super().setUp()
        self.cache = kernels.KernelCache(self.folder / "cache", "unused:mirror")
        self.wanted = kernels.Wanted("bookworm")
        index = type("Index", (FakeIndex,), {"downloads": self.folder / "downloads"})
        patch = mock.patch.object(kernels, "PackageIndex", index)
        patch.start()
        self.addCleanup(patch.stop)
        self.index = index

    def make_deb(self, name, files):
        root = self.folder / "deb" / self.index.release / name
        for path, content in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        control = root / "DEBIAN/control"
        control.parent.mkdir(parents=True, exist_ok=True)
        control.write_text(
            f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@invalid>\n"
            "Description: x\n"
        )
        self.index.packages = self.folder / "debs" / self.index.release
        self.index.packages.mkdir(parents=True, exist_ok=True)
        run_tool(["dpkg-deb", "-b", root, self.index.packages / f"{name}.deb"], name)

    def make_classic_kernel(self, release):
        self.index.release = release
        modules_folder = f"lib/modules/{release}"
        self.make_deb(
            "linux-image",
            {
                f"boot/vmlinuz-{release}": make_bzimage(b"\x7fELF classic", gzip.compress),
                f"boot/config-{release}": b"CONFIG_BPF=y\n",
                f"boot/System.map-{release}": b"map\n",
                f"{modules_folder}/modules.order": b"",
                f"{modules_folder}/modules.builtin": b"kernel/fs/ext4/ext4.ko\n",
            },
        )

    def test_classic_package(self):
        self.make_classic_kernel("6.1.0-1-test")
        kernel = self.cache.get(self.wanted)
        self.assertEqual(kernel.release, "6.1.0-1-test")
        self.assertEqual(kernel.version, "6.1.1-1")
        self.assertEqual(kernel.vmlinux.read_bytes(), b"\x7fELF classic")
        self.assertEqual(kernel.config.read_bytes(), b"CONFIG_BPF=y\n")
        self.assertTrue((kernel.modules / "modules.dep").exists())
        self.assertEqual(modules.ModuleIndex(kernel.modules).plan(["ext4"]).builtin, ("ext4",))

    def test_split_packages(self):
        self.index.release = release = "7.3.4-test"
        folder = f"usr/lib/modules/{release}"
        image = make_bzimage(b"\x7fELF split", gzip.compress)
        self.make_deb("linux-binary", {f"{folder}/vmlinuz": image})
        self.make_deb(
            "linux-modules", {f"{folder}/modules.order": b"", f"{folder}/modules.builtin": b""}
        )
        self.make_deb("linux-base", {f"{folder}/config": b"C\n", f"{folder}/System.map": b"m\n"})
        kernel = self.cache.get(self.wanted)
        self.assertEqual(kernel.vmlinux.read_bytes(), b"\x7fELF split")
        self.assertEqual(kernel.config.read_bytes(), b"C\n")
        self.assertTrue((kernel.modules / "modules.dep").exists())

    def test_second_run_downloads_nothing(self):
        self.make_classic_kernel("6.1.0-1-test")
        first = self.cache.get(self.wanted)
        self.assertEqual(self.cache.get(self.wanted), first)
        self.assertEqual(self.downloads(), 1)

    def test_failed_download_leaves_nothing(self):
        self.index.fail = True
        self.assert_refused("the network is gone", self.cache.get, self.wanted)
        self.assertIsNone(self.cache.cached("bookworm"))
        self.assertEqual(os.listdir(self.folder / "cache/bookworm"), ["lock"])

    def test_impossible_cache_folder_is_refused(self):
        cache = kernels.KernelCache(self.write("file", ""))
        self.assert_refused("give another with --cache", cache.get, self.wanted)

    def test_leftover_of_a_killed_run_is_removed(self):
        self.make_classic_kernel("6.1.0-1-test")
        self.write("cache/bookworm/partial.killed/half.deb", b"half")
        self.cache.get(self.wanted)
        self.assertFalse((self.folder / "cache/bookworm/partial.killed").exists())

    def test_concurrent_runs_download_once(self):
        self.make_classic_kernel("6.1.0-1-test")
        context = multiprocessing.get_context("fork")
        runs = [context.Process(target=self.cache.get, args=(self.wanted,)) for _ in range(3)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        self.assertEqual([run.exitcode for run in runs], [0, 0, 0])
        self.assertEqual(self.downloads(), 1)

    def test_update_replaces_the_kernel_but_not_under_a_run(self):
        self.make_classic_kernel("6.1.0-1-test")
        old = self.cache.get(self.wanted)
        self.make_classic_kernel("6.1.0-2-test")
        self.assertEqual(self.cache.get(self.wanted).release, "6.1.0-1-test")
        self.assertEqual(self.cache.get(self.wanted, update=True).release, "6.1.0-2-test")
        self.assertTrue(old.vmlinux.exists(), "this process still holds it")

    def test_update_removes_what_nobody_holds(self):
        self.make_classic_kernel("6.1.0-1-test")
        context = multiprocessing.get_context("fork")
        run = context.Process(target=self.cache.get, args=(self.wanted,))
        run.start()
        run.join()
        old = self.cache.cached("bookworm")
        self.make_classic_kernel("6.1.0-2-test")
        self.cache.get(self.wanted, update=True)
        self.assertFalse(old.directory.exists())

    def test_alias_is_checked_before_the_download(self):
        self.make_classic_kernel("6.7.0-1-test")
        self.assert_refused(
            "bookworm carries 6.7.0-1-test now", self.cache.get, kernels.Wanted("bookworm", "6.1")
        )
        self.assertEqual(self.downloads(), 0)

    def test_alias_is_checked_on_the_cached_kernel(self):
        self.make_classic_kernel("6.7.0-1-test")
        self.cache.get(self.wanted)
        self.assert_refused(
            "--kernel=6.1: bookworm carries 6.7.0-1-test now",
            self.cache.get,
            kernels.Wanted("bookworm", "6.1"),
        )

    def downloads(self):
        log = self.folder / "downloads"
        return len(log.read_text().splitlines()) if log.exists() else 0


def make_bzimage(vmlinux, compress, appended_size=False, setup_sectors=2):
    """As the kernel's build does it, without the code."""
    payload = compress(vmlinux)
    if appended_size:
        payload += struct.pack("<I", len(vmlinux))
    setup = bytearray((setup_sectors + 1) * 512)
    setup[0x1F1] = setup_sectors
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", setup, 0x248, 64, len(payload))
    return bytes(setup) + bytes(64) + payload + bytes(100)


class BzImageTest(TestCase):
    VMLINUX = b"\x7fELF" + bytes(range(256)) * 500

    def test_compressions(self):
        cases = {
            "gzip": (gzip.compress, False),
            "xz": (lzma.compress, True),
            "lzma": (lambda data: lzma.compress(data, lzma.FORMAT_ALONE), True),
            "bzip2": (bz2.compress, True),
            "zstd": (with_tool("zstd", "-19", "-cq"), True),
            "lz4": (with_tool("lz4", "-l", "-9", "-cq"), True),
        }
        for name, (compress, appended_size) in cases.items():
            image = make_bzimage(self.VMLINUX, compress, appended_size)
            self.assertEqual(extract_vmlinux(image, name), self.VMLINUX, name)

    def test_refused(self):
        good = make_bzimage(self.VMLINUX, lzma.compress, True)
        no_elf = make_bzimage(b"no ELF here, but long enough", gzip.compress)
        plain = make_bzimage(self.VMLINUX, bytes)
        wrong_size = make_bzimage(self.VMLINUX, lambda data: lzma.compress(data) + bytes(4))
        damaged = bytearray(good)
        damaged[1700:1750] = bytes(50)
        cases = (
            (b"", "not a bzImage"),
            (b"x" * 5000, "not a bzImage"),
            (good[:-120], "the file ends before its kernel does"),
            (plain, "unknown compression"),
            (no_elf, "no ELF file"),
            (wrong_size, "its header says 0"),
            (bytes(damaged), "damaged"),
        )
        for image, expected in cases:
            self.assert_refused(expected, extract_vmlinux, image, "vmlinuz-x")
