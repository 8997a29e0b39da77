"""What goes into the guest."""

import gzip
import io
import lzma
import os
import shutil
import stat

import cpio
import initramfs
import kernels
import libraries
import modules
from process import run_tool
from support import LIBRARY, PROGRAM, SHARED, TestCase, with_tool


class ModulesTest(TestCase):
    DEP = (
        "kernel/fs/btrfs/btrfs.ko.xz: kernel/crypto/xor.ko.xz kernel/lib/raid6.ko.xz "
        "kernel/lib/libcrc32c.ko.xz\n"
        "kernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko.xz\n"
        "kernel/lib/libcrc32c.ko.xz:\n"
        "kernel/crypto/xor.ko.xz:\n"
        "kernel/lib/raid6.ko.xz: kernel/crypto/xor.ko.xz\n"
        "kernel/net/nf-x.ko.zst:\n"
    )

    def setUp(self):
        super().setUp()
        self.write("modules.dep", self.DEP)
        self.write("modules.builtin", "kernel/fs/ext4/ext4.ko\nkernel/crypto/crc32c-generic.ko\n")
        self.index = modules.ModuleIndex(self.folder)

    def names(self, *wanted):
        return [modules.module_name(str(path)) for path in self.index.plan(wanted).files]

    def test_dependencies_come_first_and_once(self):
        cases = (
            (("xfs",), ["libcrc32c", "xfs"]),
            (("xfs", "libcrc32c"), ["libcrc32c", "xfs"]),
            (("btrfs", "xfs"), ["xor", "raid6", "libcrc32c", "btrfs", "xfs"]),
            (("raid6", "xor"), ["xor", "raid6"]),
            (("nf-x",), ["nf_x"]),
            (("nf_x", "nf-x"), ["nf_x"]),
            ((), []),
        )
        for wanted, want in cases:
            self.assertEqual(self.names(*wanted), want)

    def test_builtin(self):
        plan = self.index.plan(["ext4", "crc32c_generic", "xfs"])
        self.assertEqual(plan.builtin, ("ext4", "crc32c_generic"))
        self.assertEqual(len(plan.files), 2)

    def test_missing_is_refused(self):
        self.assert_refused("has no module nosuch", self.index.plan, ["nosuch"])

    def test_missing_index_is_refused(self):
        self.assert_refused("modules.dep", modules.ModuleIndex, self.folder / "nowhere")

    def test_compressions(self):
        plain = b"\x7fELF module" * 50
        cases = {
            "a.ko": bytes,
            "a.ko.xz": lzma.compress,
            "a.ko.gz": gzip.compress,
            "a.ko.zst": with_tool("zstd", "-cq"),
        }
        for name, compress in cases.items():
            path = self.write(name, compress(plain))
            self.assertEqual(modules.read_module(path), plain, name)


class CpioTest(TestCase):
    def archive(self):
        archive = cpio.Archive()
        archive.add_bytes("/etc/motd", b"hi\n")
        archive.add_bytes("/empty", b"")
        archive.add_file("/t/bin/run me", self.write("source", b"x" * 4097, 0o750))
        archive.add_symlink("/bin/sh", "busybox")
        archive.add_character_device("/dev/console", 5, 1)
        archive.add_directory("/tmp", 0o1777)
        return archive

    def written(self, archive):
        out = io.BytesIO()
        archive.write(out)
        return out.getvalue()

    def test_round_trip_through_cpio(self):
        listing = run_tool(["cpio", "-tv"], "cpio", input_data=self.written(self.archive()))
        rows = {}
        for line in listing.decode().splitlines():
            words = line.split()
            rows[" ".join(words[8:]) if words[0][0] != "c" else words[-1]] = words
        self.assertEqual(
            set(rows),
            {".", "etc", "etc/motd", "empty", "t", "t/bin", "t/bin/run me", "bin", "tmp", "dev"}
            | {"bin/sh -> busybox", "dev/console"},
        )
        self.assertEqual(rows["."][0], "drwxr-xr-x")
        self.assertEqual(rows["tmp"][0], "drwxrwxrwt")
        self.assertEqual(rows["t/bin/run me"][0], "-rwxr-x---")
        self.assertEqual(rows["t/bin/run me"][4], "4097")
        self.assertEqual(rows["dev/console"][0], "crw-------")
        self.assertEqual(rows["dev/console"][4:6], ["5,", "1"])
        self.assertTrue(all(row[2:4] == ["root", "root"] for row in rows.values()))

    def test_unpacked_bytes_are_the_same(self):
        data = self.written(self.archive())
        target = self.folder / "unpacked"
        target.mkdir()
        run_tool(["cpio", "-idm", "t/*", "etc/*", "empty"], "cpio", input_data=data, cwd=target)
        self.assertEqual((target / "t/bin/run me").read_bytes(), b"x" * 4097)
        self.assertEqual((target / "etc/motd").read_bytes(), b"hi\n")
        self.assertEqual((target / "empty").read_bytes(), b"")

    def test_same_content_same_bytes(self):
        self.assertEqual(self.written(self.archive()), self.written(self.archive()))

    def test_folders_come_before_what_is_in_them(self):
        names = run_tool(["cpio", "-t"], "cpio", input_data=self.written(self.archive()))
        seen = {"."}
        for name in names.decode().splitlines():
            self.assertIn(os.path.dirname(name) or ".", seen)
            seen.add(name)

    def test_conflicts_are_refused(self):
        archive = self.archive()
        self.assert_refused("two different things", archive.add_bytes, "/etc/motd", b"other")
        self.assert_refused("/etc/motd is no folder", archive.add_bytes, "/etc/motd/x", b"")
        self.assert_refused("two different things", archive.add_bytes, "/etc", b"")
        self.assert_refused("two different things", archive.add_directory, "/empty")
        archive.add_bytes("/etc/motd", b"hi\n")  # the same again is no conflict
        archive.add_directory("/etc", 0o700)
        archive.add_directory("/", 0o755)


class LibrariesTest(TestCase):
    def test_ldd_output(self):
        text = (
            "\tlinux-vdso.so.1 (0x00007ffc8e5f2000)\n"
            "\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f0d0a600000)\n"
            "\tlibz.so.1 => /opt/my libs/libz.so.1 (0x00007f0d0a600000)\n"
            "\t/lib64/ld-linux-x86-64.so.2 (0x00007f0d0a9d5000)\n"
        )
        self.assertEqual(
            list(libraries.parse_ldd(text, "x")),
            [
                ("libstdc++.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6"),
                ("libz.so.1", "/opt/my libs/libz.so.1"),
                (None, "/lib64/ld-linux-x86-64.so.2"),
            ],
        )

    def test_missing_library_is_refused(self):
        parse = lambda text: list(libraries.parse_ldd(text, "prog"))
        self.assert_refused("prog needs liba.so", parse, "\tliba.so => not found\n")

    def test_system_program(self):
        found = libraries.closure([shutil.which("ls")])
        self.assertIn("/lib64/ld-linux-x86-64.so.2", found.fixed)
        self.assertTrue(any("/libc.so.6" in path for path in found.fixed))
        self.assertEqual(found.loose, {})

    def test_static_program(self):
        static = self.compile("static", "int main(void) { return 0; }", "-static")
        self.assertTrue(libraries.is_static(static))
        self.assertFalse(libraries.is_static(shutil.which("ls")))

    def test_library_of_a_build_folder_is_loose(self):
        library = self.compile("lib/libanswer.so", LIBRARY, *SHARED)
        program = self.compile(
            "bin/program", PROGRAM, library, "-Wl,-rpath,$ORIGIN/../lib"
        )
        found = libraries.closure([program])
        self.assertEqual(set(found.loose), {"libanswer.so"})

    def test_library_linked_by_path_keeps_it(self):
        library = self.compile("lib/unnamed.so", LIBRARY, "-shared", "-fPIC")
        program = self.compile("bin/program", PROGRAM, library)
        self.assertIn(str(library), libraries.closure([program]).fixed)

    def test_library_given_as_a_file_is_found(self):
        library = self.compile("lib/libanswer.so", LIBRARY, *SHARED)
        program = self.compile("bin/program", PROGRAM, f"-L{library.parent}", "-lanswer")
        self.assert_refused("needs libanswer.so", libraries.closure, [program])
        self.assertEqual(set(libraries.closure([program], [library]).loose), {"libanswer.so"})

    def test_two_libraries_of_one_name_are_refused(self):
        programs = []
        for folder in ("a", "b"):
            library = self.compile(f"{folder}/libanswer.so", LIBRARY, *SHARED)
            programs.append(
                self.compile(f"{folder}/program", PROGRAM, library, "-Wl,-rpath,$ORIGIN")
            )
        self.assert_refused("two libraries are called libanswer.so", libraries.closure, programs)


class InitramfsTest(TestCase):
    def setUp(self):
        super().setUp()
        self.kernel = kernels.Kernel("bookworm", "6.1.0-1-test", "1", self.folder / "kernel")
        for name in ("config", "System.map"):
            self.write(f"kernel/{name}", b"x\n")
        module_folder = "kernel/lib/modules/6.1.0-1-test"
        self.write(f"{module_folder}/modules.dep", "kernel/a.ko.xz: kernel/b.ko\nkernel/b.ko:\n")
        self.write(f"{module_folder}/modules.builtin", "kernel/c.ko\n")
        self.write(f"{module_folder}/kernel/a.ko.xz", lzma.compress(b"a"))
        self.write(f"{module_folder}/kernel/b.ko", b"b")

    def build(self, *command, say=lambda text: None, **contents):
        contents = initramfs.Contents(command, **contents)
        return initramfs.build(self.kernel, contents, self.folder / "tools", say)

    def content(self, archive, path):
        return archive._nodes[path].data.decode()

    def test_guest_command(self):
        archive = self.build("sh", "-c", "echo 'it is'; exit 3", environment=("A=b c", "E=x=y"))
        script = self.content(archive, "/vm/command")
        self.assertIn("export A='b c'\n", script)
        self.assertIn("export E=x=y\n", script)
        self.assertIn("export KSWEEP_VM=1\n", script)
        self.assertIn("export KSWEEP_VM_SUITE=bookworm\n", script)
        self.assertIn("export KSWEEP_KERNEL_CONFIG=/boot/config-6.1.0-1-test\n", script)
        self.assertIn("/boot/config-6.1.0-1-test", archive)
        self.assertNotIn("LD_LIBRARY_PATH", script)
        self.assertTrue(
            script.endswith("exec /vm/vmexit sh -c 'echo '\"'\"'it is'\"'\"'; exit 3'\n"), script
        )

    def test_host_program_runs_from_its_place_in_the_guest(self):
        program = self.write("my prog", "#!/bin/sh\n", 0o700)
        archive = self.build(str(program), "arg")
        self.assertIn("/t/bin/my prog", archive)
        self.assertTrue(
            self.content(archive, "/vm/command").endswith("exec /vm/vmexit '/t/bin/my prog' arg\n")
        )

    def test_modules(self):
        said = []
        archive = self.build("true", modules=("a", "c"), say=said.append)
        folder = "/lib/modules/6.1.0-1-test/kernel"
        self.assertEqual(self.content(archive, "/vm/modules"), f"{folder}/b.ko\n{folder}/a.ko\n")
        self.assertEqual(self.content(archive, f"{folder}/a.ko"), "a")
        self.assertEqual(said, ["module c is built into 6.1.0-1-test: nothing to load"])

    def test_files(self):
        file = self.write("one", b"1", 0o600)
        self.write("tree/deep/two", b"2")
        archive = self.build(
            "true",
            files=(f"{file}", f"{file}:data/", f"{file}:/etc/x", f"{self.folder}/tree:."),
        )
        for path in ("/t/one", "/t/data/one", "/etc/x", "/t/deep/two"):
            self.assertIn(path, archive)
        mode = archive._nodes["/t/one"].mode
        self.assertEqual(stat.S_IMODE(mode), 0o644, "others in the guest can read it")

    def test_refused(self):
        text = str(self.write("text", "no program"))
        script = str(self.write("script", "#!/opt/lua\n", 0o755))
        cases = (
            ("the command nosuch is neither", ("nosuch",), {}),
            ("the command /no/such is neither", ("/no/such",), {}),
            ("text is not executable", (text,), {}),
            ("no such file; build it first", ("true",), {"programs": ("nosuch",)}),
            ("is a script for /opt/lua", (script,), {}),
            ("there is no nosuch", ("true",), {"files": ("nosuch:x",)}),
            ("not of the form NAME=VALUE", ("true",), {"environment": ("A",)}),
            ("not of the form NAME=VALUE", ("true",), {"environment": ("A B=1",)}),
            ("has no module zzz", ("true",), {"modules": ("zzz",)}),
            ("two different things", ("true",), {"files": (f"{text}:/init",)}),
        )
        for expected, command, contents in cases:
            with self.subTest(expected):
                self.assert_refused(expected, lambda: self.build(*command, **contents))

    def test_command_brought_as_a_file(self):
        script = self.write("script", "#!/bin/sh\n", 0o755)
        self.build("tool/script", files=(f"{script}:tool/",))
