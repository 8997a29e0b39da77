#!/usr/bin/env python3
"""Tests the example `symindex` as a user runs it.

    symindex_test.py PATH_TO_SYMINDEX DATA_DIR

DATA_DIR is selftests/data. The last line is "N passed, N failed".
"""

import collections
import gzip
import json
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SYMINDEX = ""
REAL = ""        # a root with the lists of a real kernel
REAL_INDEX = ""  # its index

KALLSYMS = b"""\
ffffffff81000000 T _stext
ffffffff81000100 T alpha
ffffffff81000200 t beta
ffffffff81000300 t beta
ffffffff81000300 T gamma
ffffffff81000400 T bad_\xff\xfe
ffffffff81000500 T bad_\xc3\xa9
ffffffff810005f0 t __pfx_padded
ffffffff81000600 t padded
ffffffff81000700 D data
ffffffff81000800 T _etext
ffffffff81001000 B _end
ffffffffc0000100 t alpha\t[mod]
ffffffffc0000200 t mod_last\t[mod]
"""
BUILD_ID = "00112233445566778899aabbccddeeff01234567"
NOTES = (b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes.fromhex(BUILD_ID))
SLIDE = 0x1000000

SYMBOL_TYPES = {"name": str, "module": (str, type(None)), "addr": str,
                "type": str, "size": (int, type(None))}


def write(root, path, data):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make_root(root, kallsyms=KALLSYMS, notes=NOTES, boot=b"first"):
    write(root, "proc/kallsyms", kallsyms)
    write(root, "proc/sys/kernel/kptr_restrict", b"1\n")
    write(root, "proc/sys/kernel/random/boot_id", boot + b"\n")
    if notes:
        write(root, "sys/kernel/notes", notes)
    return root


def moved(kallsyms, slide):
    return re.sub(rb"(?m)^[0-9a-f]{16}",
                  lambda m: b"%016x" % (int(m.group(), 16) + slide), kallsyms)


def gunzip_tree(source, root):
    for folder, _, names in os.walk(source):
        for name in names:
            path = os.path.join(folder, name)
            with gzip.open(path) as file:
                inner = os.path.relpath(path, source)[:-len(".gz")]
                write(root, inner, file.read())


def make_vmlinux(symbols):
    """An ELF file with (addr, size, is_local, name) as functions of .text."""
    start = min(addr for addr, *_ in symbols)
    end = max(addr + size for addr, size, *_ in symbols)
    strings = b"\0"
    table = bytes(24)
    for addr, size, is_local, name in sorted(symbols, key=lambda s: not s[2]):
        table += struct.pack("<IBBHQQ", len(strings), (0 if is_local else 16) + 2,
                             0, 1, addr, size)
        strings += name + b"\0"
    local_cnt = 1 + sum(is_local for _, _, is_local, _ in symbols)
    names = b"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0"

    def section(name, kind, flags, addr, data, link=0, info=0, entry=0):
        row = struct.pack("<IIQQQQIIQQ", names.index(name), kind, flags, addr,
                          section.offset, len(data), link, info, 4, entry)
        data += bytes(-len(data) % 8)
        section.offset += len(data)
        return row, data

    section.offset = 64
    parts = [
        (bytes(64), b""),
        section(b".text\0", 1, 6, start, bytes(end - start)),
        section(b".note.gnu.build-id\0", 7, 2, end, NOTES),
        section(b".symtab\0", 2, 0, 0, table, 4, local_cnt, 24),
        section(b".strtab\0", 3, 0, 0, strings),
        section(b".shstrtab\0", 3, 0, 0, names),
    ]
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, section.offset, 0, 64, 0, 0, 64,
        len(parts), 5)
    return (head + b"".join(data for _, data in parts)
            + b"".join(row for row, _ in parts))


class SymindexTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.temp)
        self.root = make_root(os.path.join(self.temp, "root"))
        self.index = os.path.join(self.temp, "index")

    def run_symindex(self, *args, **options):
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([SYMINDEX, *args], stderr=subprocess.PIPE,
                              timeout=120, check=False, **options)

    def succeed(self, *args, code=0, **options):
        done = self.run_symindex(*args, **options)
        self.assertEqual(done.returncode, code, (args, done.stderr))
        return done.stdout.decode("utf-8")

    def build(self, *args):
        return self.succeed("build", "--root=" + self.root, "-o", self.index,
                            *args)

    def ask(self, command, *args, index=None, **options):
        """The JSON of one answer, with addresses as built."""
        return json.loads(self.succeed(
            command, "--index=" + (index or self.index), "--as_built", "--json",
            *args, **options))

    def names(self, symbols):
        return [symbol["name"] for symbol in symbols]

    # --- usage: exit code 2 ---

    def assert_usage_error(self, *args, says):
        for more in ([], ["--json"]):
            done = self.run_symindex(*args, *more)
            self.assertEqual(done.returncode, 2, (args, done.stderr))
            self.assertEqual(done.stdout, b"")
            text = done.stderr.decode()
            self.assertRegex(text, r"\Asymindex: ")
            for part in (*says, "--help"):
                self.assertIn(part, text)

    def test_wrong_usage(self):
        for args, says in (
                ([], ["no command"]),
                (["nope"], ["'nope'"]),
                (["build"], ["-o FILE"]),
                (["build", "-o", "x", "y"], ["'y'"]),
                (["build", "--vmlinux=a", "--system_map=b", "-o", "x"],
                 ["--vmlinux", "--system_map"]),
                (["build", "--root=/", "--vmlinux=b", "-o", "x"], ["--root"]),
                (["build", "-o", "x", "--build_id=abc"], ["--build_id=abc"]),
                (["build", "-o", "x", "--build_id=zz"], ["--build_id=zz"]),
                (["name", "alpha"], ["--index=FILE"]),
                (["name", "--index=x"], ["name", "standard input"]),
                (["addr", "--index=x"], ["addr"]),
                (["addr", "--index=x", "12g"], ["'12g'", "address"]),
                (["addr", "--index=x", "0x"], ["'0x'", "address"]),
                (["addr", "--index=x", ""], ["''", "address"]),
                (["addr", "--index=x", "11112222333344445"], ["64 bits"]),
                (["btf", "--index=x", "ten"], ["'ten'", "BTF id"]),
                (["btf", "--index=x", "4294967296"], ["32 bits"]),
                (["btf", "--index=x", "veth:"], ["'veth:'", "BTF id"]),
                (["btf", "--index=x", "btf:veth:x"], ["'btf:veth:x'"]),
                (["glob", "--index=x", "a[b"], ["a[b"]),
                (["prefix", "--index=x"], ["prefix"]),
                (["stat"], ["--index=FILE"]),
                (["stat", "--index=x", "more"], ["'more'"]),
                (["verify"], ["--index=FILE"]),
                (["modules", "--index=x"], ["-o FILE"])):
            with self.subTest(args=args):
                self.assert_usage_error(*args, says=says)

    def test_unknown_flag(self):
        done = self.run_symindex("stat", "--nope")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--nope", done.stderr)

    def test_help_and_version(self):
        text = self.succeed("--help")
        for word in ("build", "name", "addr", "prefix", "glob", "btf", "stat",
                     "verify", "--index", "--output", "--[no]json"):
            self.assertIn(word, text)
        self.assertRegex(self.succeed("--version"), r"\Asymindex .*\d+\.\d+")

    # --- failures: exit code 1 ---

    def assert_failure(self, *args, says, **options):
        done = self.run_symindex(*args, **options)
        self.assertEqual(done.returncode, 1, (args, done.stderr))
        for part in says:
            self.assertIn(part, done.stderr.decode())
        done = self.run_symindex(*args, "--json", **options)
        self.assertEqual(done.returncode, 1, (args, done.stderr))
        for part in says:
            self.assertIn(part, json.loads(done.stdout)["error"])

    def test_missing_index(self):
        none = os.path.join(self.temp, "none")
        for args in (["name", "alpha"], ["addr", "ffffffff81000000"],
                     ["prefix", "al"], ["btf", "1"], ["stat"], ["verify"]):
            self.assert_failure(*args, "--index=" + none, says=[none])

    def test_missing_sources(self):
        none = os.path.join(self.temp, "none")
        for flag, path in (("--root", "none/proc/kallsyms"), ("--vmlinux", none),
                           ("--system_map", none)):
            self.assert_failure("build", flag + "=" + none, "-o", self.index,
                                says=[path])
            self.assertFalse(os.path.exists(self.index))
        self.assert_failure("build", "--root=" + self.root, "--btf=" + none,
                            "-o", self.index, says=["--btf=" + none])

    def test_cannot_save(self):
        path = os.path.join(self.temp, "no/such/folder")
        self.assert_failure("build", "--root=" + self.root, "-o", path,
                            says=[path])

    def test_hidden_addresses(self):
        root = make_root(os.path.join(self.temp, "hidden"),
                         re.sub(rb"(?m)^[0-9a-f]{16}", b"0" * 16, KALLSYMS))
        self.assert_failure("build", "--root=" + root, "-o", self.index,
                            says=["kptr_restrict"])
        self.assertFalse(os.path.exists(self.index))

    def test_malformed_kallsyms(self):
        root = make_root(os.path.join(self.temp, "broken"),
                         KALLSYMS + b"what is this\n")
        self.assert_failure("build", "--root=" + root, "-o", self.index,
                            says=["15"])

    def test_placeholder_of_system_map(self):
        path = os.path.join(self.temp, "System.map")
        write("/", path, b"ffffffffffffffff B The real System.map is in the "
                         b"linux-image-6.1.0-13-amd64-dbg package\n")
        self.assert_failure("build", "--system_map=" + path, "-o", self.index,
                            says=["linux-image-6.1.0-13-amd64-dbg"])

    def test_files_that_are_no_index(self):
        path = os.path.join(self.temp, "file")
        for content in (b"", b"x", KALLSYMS, b"\x7fELF" + bytes(500),
                        bytes(100000)):
            write("/", path, content)
            self.assert_failure("stat", "--index=" + path, says=[path])
            self.assert_failure("verify", "--index=" + path, says=[path])

    def test_cut_off_index(self):
        self.build()
        with open(self.index, "rb") as file:
            whole = file.read()
        path = os.path.join(self.temp, "cut")
        for size in (1, 8, 63, 64, 200, len(whole) // 2, len(whole) - 1):
            write("/", path, whole[:size])
            self.assert_failure("name", "alpha", "--index=" + path, says=[path])

    def test_damaged_index(self):
        """Flipped bytes are found by verify, and no other call crashes."""
        self.build()
        with open(self.index, "rb") as file:
            whole = file.read()
        path = os.path.join(self.temp, "damaged")
        unseen = []
        places = range(0, len(whole), max(1, len(whole) // 60))
        for at in places:
            write("/", path,
                  whole[:at] + bytes([whole[at] ^ 0x5a]) + whole[at + 1:])
            done = self.run_symindex("verify", "--index=" + path)
            if done.returncode == 0:
                unseen.append(at)
            else:
                self.assertEqual(done.returncode, 1, (at, done.stderr))
                self.assertIn(path, done.stderr.decode())
            for args in (["name", "alpha", "beta"], ["prefix", ""],
                         ["addr", "ffffffff81000123"]):
                done = self.run_symindex(*args, "--as_built", "--index=" + path)
                self.assertIn(done.returncode, (0, 1), (at, args, done.stderr))
        # Zeros that only fill up to the next section.
        self.assertEqual([whole[at] for at in unseen], [0] * len(unseen))
        self.assertLess(len(unseen), len(places) / 10)

    def test_stale_index(self):
        self.build()
        other = make_root(os.path.join(self.temp, "other"),
                          notes=NOTES[:-1] + b"\x01")
        self.assert_failure("name", "alpha", "--index=" + self.index,
                            "--root=" + other, says=["build"])

    def test_closed_stdout(self):
        self.build()
        reader, writer = os.pipe()
        os.close(reader)
        for args in (["prefix", ""], ["addr", "-"], ["stat"], ["name", "alpha"]):
            done = self.run_symindex(
                *args, "--index=" + self.index, "--as_built", stdout=writer,
                input=b"ffffffff81000000\n" * 100)
            self.assertEqual(done.returncode, 1, args)
            self.assertEqual(done.stderr.count(b"cannot write the output"), 1)
        os.close(writer)

    # --- answers ---

    def test_name(self):
        self.build()
        alpha = self.ask("name", "alpha")
        for symbol in alpha:
            self.assertEqual(list(symbol), list(SYMBOL_TYPES))
            for key, wanted in SYMBOL_TYPES.items():
                self.assertIsInstance(symbol[key], wanted)
        self.assertEqual(alpha, [
            {"name": "alpha", "module": None, "addr": "0xffffffff81000100",
             "type": "T", "size": 0x100},
            {"name": "alpha", "module": "mod", "addr": "0xffffffffc0000100",
             "type": "t", "size": 0x100}])
        beta = self.ask("name", "beta", "padded", "__pfx_padded")
        self.assertEqual([int(symbol["addr"], 16) & 0xffff for symbol in beta],
                         [0x200, 0x300, 0x600, 0x5f0])
        self.assertEqual(self.ask("name", "mod_last")[0]["size"], None)

    def test_absent_name(self):
        self.build()
        self.assertEqual(self.ask("name", "alph", code=1), [])
        done = self.run_symindex("name", "alpha", "nosuch", "--as_built",
                                 "--index=" + self.index)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"symindex: nosuch: not found", done.stderr)
        self.assertIn(b"ffffffff81000100", done.stdout)

    def test_addr(self):
        self.build()
        answer = self.ask("addr", "0xffffffff81000301")
        self.assertEqual([(s["name"], s["module"], s["offset"])
                          for s in answer["symbols"]],
                         [("gamma", None, 1), ("beta", None, 1)])
        (symbol,) = self.ask("addr", "ffffffffc0000110")["symbols"]
        self.assertEqual((symbol["name"], symbol["module"], symbol["offset"]),
                         ("alpha", "mod", 0x10))
        (symbol,) = self.ask("addr", "ffffffff810006ff")["symbols"]
        self.assertEqual((symbol["name"], symbol["offset"], symbol["size"]),
                         ("padded", 0xff, 0x100))

    def test_nothing_at_an_address(self):
        self.build()
        for addr in ("0", "ffffffff80ffffff", "ffffffff90000000",
                     "ffffffffffffffff"):
            self.assertEqual(self.ask("addr", addr, code=1)["symbols"], [])
        text = self.succeed("addr", "ffffffff90000000", "--as_built",
                            "--index=" + self.index, code=1)
        self.assertEqual(text, "ffffffff90000000  ?\n")

    def test_addr_of_data(self):
        self.build()
        self.assertEqual(
            self.names(self.ask("addr", "ffffffff81000710")["symbols"]),
            ["data"])
        self.assertEqual(self.ask("addr", "ffffffff81000710", "--functions",
                                  code=1)["symbols"], [])

    def test_prefix_and_glob(self):
        self.build()
        self.assertEqual(self.names(self.ask("prefix", "be", "pa")),
                         ["beta", "beta", "padded"])
        self.assertEqual(self.names(self.ask("prefix", "__pfx_")),
                         ["__pfx_padded"])
        self.assertEqual(self.names(self.ask("glob", "*ta")),
                         ["beta", "beta", "data"])
        self.assertEqual(self.ask("prefix", "nosuch", code=1), [])
        self.assertEqual(len(self.ask("prefix", "")), 13)

    def test_names_that_are_not_utf8(self):
        self.build()
        self.assertEqual(self.names(self.ask("prefix", "bad_")),
                         ["bad_\u00ff\u00fe", "bad_\u00e9"])
        self.assertEqual(self.names(self.ask("name", b"bad_\xff\xfe")),
                         ["bad_\u00ff\u00fe"])
        text = self.succeed("prefix", "bad_", "--as_built",
                            "--index=" + self.index)
        self.assertIn(r"bad_\xff\xfe", text)

    def test_text(self):
        self.build()
        text = self.succeed("name", "alpha", "--as_built",
                            "--index=" + self.index)
        self.assertEqual(text, """\
ADDRESS           TYPE  SIZE  MODULE  NAME
ffffffff81000100  T      256  -       alpha
ffffffffc0000100  t      256  mod     alpha
""")
        text = self.succeed("addr", "ffffffff81000301", "ffffffffc0000110",
                            "--as_built", "--index=" + self.index)
        self.assertEqual(text, """\
ffffffff81000301  gamma+0x1/0x100  also beta+0x1/0x100
ffffffffc0000110  alpha+0x10/0x100 [mod]
""")

    def test_standard_input(self):
        self.build()
        text = self.succeed("addr", "-", "--json", "--as_built",
                            "--index=" + self.index,
                            input=b"ffffffff81000000\n\n0xffffffff90000000\n")
        answers = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([self.names(a["symbols"]) for a in answers],
                         [["_stext"], []])
        self.assertEqual([a["address"] for a in answers],
                         ["0xffffffff81000000", "0xffffffff90000000"])
        text = self.succeed("name", "-", "--json", "--as_built",
                            "--index=" + self.index, input=b"beta\nnosuch\nalpha")
        self.assertEqual([self.names(json.loads(line))
                          for line in text.splitlines()],
                         [["beta", "beta"], [], ["alpha", "alpha"]])
        self.assertEqual(self.succeed("addr", "-", "--as_built",
                                      "--index=" + self.index, input=b""), "")

    def test_malformed_line_of_standard_input(self):
        self.build()
        done = self.run_symindex(
            "addr", "-", "--as_built", "--index=" + self.index,
            input=b"ffffffff81000000\nwhat\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"line 2 of the standard input: 'what'", done.stderr)
        self.assertEqual(done.stdout.count(b"\n"), 1)

    def test_each_line_is_answered_at_once(self):
        self.build()
        with subprocess.Popen(
                [SYMINDEX, "addr", "-", "--as_built", "--index=" + self.index],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for addr, name in ((b"ffffffff81000101", b"alpha+0x1/0x100"),
                               (b"ffffffff81000202", b"beta+0x2/0x100")):
                process.stdin.write(addr + b"\n")
                process.stdin.flush()
                self.assertTrue(select.select([process.stdout], [], [], 60)[0])
                self.assertIn(name, process.stdout.readline())
            process.stdin.close()

    # --- which kernel's addresses ---

    def test_moved_kernel(self):
        self.build()
        root = make_root(os.path.join(self.temp, "moved"),
                         moved(KALLSYMS, SLIDE), boot=b"second")
        done = self.run_symindex("name", "gamma", "alpha", "--json",
                                 "--index=" + self.index, "--root=" + root)
        self.assertEqual([s["addr"] for s in json.loads(done.stdout)],
                         ["0xffffffff82000300", "0xffffffff82000100"])
        self.assertIn(b"those of another boot", done.stderr)

    def test_same_boot(self):
        self.build()
        done = self.run_symindex("name", "alpha", "--json",
                                 "--index=" + self.index, "--root=" + self.root)
        self.assertEqual(len(json.loads(done.stdout)), 2)
        self.assertEqual(done.stderr, b"")

    def test_other_machines_kernel_without_a_flag(self):
        self.build()
        done = self.run_symindex("name", "gamma", "--index=" + self.index,
                                 "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)[0]["addr"],
                         "0xffffffff81000300")
        self.assertIn(b"not the running kernel's", done.stderr)

    def test_modules(self):
        self.build()
        more = KALLSYMS + b"ffffffffc0100000 t fresh\t[new]\n"
        root = make_root(os.path.join(self.temp, "more"), more)
        newer = os.path.join(self.temp, "newer")
        self.succeed("modules", "--index=" + self.index, "--root=" + root, "-o",
                     newer)
        self.assertEqual(self.ask("name", "fresh", code=1), [])
        (fresh,) = self.ask("name", "fresh", index=newer)
        self.assertEqual(fresh["module"], "new")
        self.assertGreater(self.ask("stat", index=newer)["generation"],
                           self.ask("stat")["generation"])

    def test_system_map(self):
        path = os.path.join(self.temp, "System.map")
        write("/", path, b"".join(line + b"\n" for line in KALLSYMS.splitlines()
                                  if b"[" not in line))
        stat = json.loads(self.succeed(
            "build", "--system_map=" + path, "--build_id=" + BUILD_ID, "-o",
            self.index, "--json"))
        self.assertEqual((stat["build_id"], stat["core"]["symbols"]),
                         (BUILD_ID, 12))
        self.assertEqual(self.names(self.ask("prefix", "al")), ["alpha"])

    def test_vmlinux(self):
        path = os.path.join(self.temp, "vmlinux")
        write("/", path, make_vmlinux([
            (0xffffffff81000000, 0x100, False, b"_stext"),
            (0xffffffff81000100, 0x80, True, b"local"),
            (0xffffffff81000180, 0x80, False, b"global")]))
        stat = json.loads(self.succeed("build", "--vmlinux=" + path, "-o",
                                       self.index, "--json"))
        self.assertEqual((stat["build_id"], stat["core"]["symbols"]),
                         (BUILD_ID, 3))
        self.assertEqual(
            [(s["name"], s["type"], s["addr"]) for s in self.ask("prefix", "")],
            [("_stext", "T", "0xffffffff81000000"),
             ("local", "t", "0xffffffff81000100"),
             ("global", "T", "0xffffffff81000180")])
        (symbol,) = self.ask("addr", "ffffffff810001ff")["symbols"]
        self.assertEqual((symbol["name"], symbol["offset"]), ("global", 0x7f))
        self.assertEqual(self.ask("addr", "ffffffff81000200", code=1)["symbols"],
                         [])

    # --- the file ---

    def test_stat_and_verify(self):
        built = json.loads(self.build("--json"))
        stat = self.ask("stat")
        for key in ("core", "modules", "file_bytes", "build_id", "stext"):
            self.assertEqual(stat[key], built[key])
        self.assertEqual(stat["core"]["symbols"], 12)
        self.assertEqual(stat["modules"]["symbols"], 2)
        self.assertEqual(stat["file_bytes"], os.path.getsize(self.index))
        self.assertEqual(stat["build_id"], BUILD_ID)
        self.assertIn("build id " + BUILD_ID,
                      self.succeed("stat", "--index=" + self.index,
                                   "--as_built"))
        self.assertIn("14 symbols",
                      self.succeed("verify", "--index=" + self.index))

    def test_no_btf(self):
        self.build()
        self.assert_failure("btf", "1", "--as_built", "--index=" + self.index,
                            says=["BTF"])

    # --- a real kernel's lists ---

    def test_real_names_and_addresses(self):
        wanted = collections.defaultdict(list)
        with open(os.path.join(REAL, "proc/kallsyms"), "rb") as file:
            for line in file:
                addr, kind, name, *module = line.decode().split()
                wanted[name].append((int(addr, 16), kind, (module or [None])[0]))
        names = list(wanted)[::97]
        text = self.succeed("name", "-", "--json", "--as_built",
                            "--index=" + REAL_INDEX,
                            input="\n".join(names).encode())
        for name, line in zip(names, text.splitlines()):
            found = [(int(s["addr"], 16), s["type"],
                      s["module"] and "[%s]" % s["module"])
                     for s in json.loads(line)]
            self.assertEqual(sorted(found, key=str),
                             sorted(wanted[name], key=str), name)
        addrs = [rows[0][0] for rows in map(wanted.get, names)]
        text = self.succeed("addr", "-", "--json", "--as_built",
                            "--index=" + REAL_INDEX,
                            input="\n".join("%x" % a for a in addrs).encode())
        for addr, name, line in zip(addrs, names, text.splitlines()):
            symbols = json.loads(line)["symbols"]
            starts = [s["name"] for s in symbols if s["offset"] == 0]
            if addr != 0:
                self.assertIn(name, starts)

    def test_real_btf(self):
        (vfs_read,) = self.ask("name", "vfs_read", index=REAL_INDEX)
        found = []
        for first in range(1, 120000, 20000):
            ids = "\n".join(map(str, range(first, first + 20000)))
            text = self.succeed("btf", "-", "--json", "--as_built",
                                "--index=" + REAL_INDEX, input=ids.encode())
            found += [answer["btf_id"] for answer in
                      map(json.loads, text.splitlines())
                      if vfs_read in answer["symbols"]]
        self.assertEqual(len(found), 1)
        text = self.succeed("btf", str(found[0]), "--as_built",
                            "--index=" + REAL_INDEX)
        self.assertIn("vfs_read", text)

    def test_real_module_btf(self):
        (xmit,) = self.ask("name", "veth_xmit", index=REAL_INDEX)
        self.assertEqual(xmit["module"], "veth")
        ids = "".join("veth:%d\n" % i for i in range(60000, 260000))
        text = self.succeed("btf", "-", "--json", "--as_built",
                            "--index=" + REAL_INDEX, input=ids.encode())
        found = [answer for answer in map(json.loads, text.splitlines())
                 if xmit in answer["symbols"]]
        self.assertEqual([a["btf_module"] for a in found], ["veth"])
        number = found[0]["btf_id"]
        for word in ("veth:%d", "btf:veth:%d"):
            self.assertIn("veth_xmit",
                          self.succeed("btf", word % number, "--as_built",
                                       "--index=" + REAL_INDEX))
        for word in ("%d", "vmlinux:%d", "xfs:%d"):
            run = self.run_symindex("btf", word % number, "--as_built",
                                    "--index=" + REAL_INDEX)
            self.assertNotIn("veth_xmit", run.stdout.decode())
        self.assert_failure("btf", "no_module:%d" % number, "--as_built",
                            "--index=" + REAL_INDEX, says=["no_module"])

    def test_damaged_btf_of_a_module(self):
        root = os.path.join(self.temp, "damaged")
        shutil.copytree(REAL, root)
        with open(os.path.join(root, "sys/kernel/btf/veth"), "r+b") as file:
            file.truncate(100)
        out = os.path.join(self.temp, "damaged.ksx")
        run = self.run_symindex("build", "--root=" + root, "-o", out)
        self.assertEqual(run.returncode, 0)
        self.assertIn("module veth", run.stderr.decode())
        self.assertNotIn("module xfs", run.stderr.decode())
        self.assert_failure("btf", "veth:130000", "--as_built",
                            "--index=" + out, says=["btf/veth"])

    def test_real_verify(self):
        self.assertIn("all as they should be",
                      self.succeed("verify", "--index=" + REAL_INDEX))


def main():
    global SYMINDEX, REAL, REAL_INDEX
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SYMINDEX = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as temp:
        REAL = os.path.join(temp, "real")
        REAL_INDEX = os.path.join(temp, "index")
        gunzip_tree(os.path.join(sys.argv[2], "linux-6.12.95"), REAL)
        built = subprocess.run([SYMINDEX, "build", "--root=" + REAL, "-o",
                                REAL_INDEX], stdout=subprocess.DEVNULL)
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(SymindexTest)
        result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors) + (built.returncode != 0)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
