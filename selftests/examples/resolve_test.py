#!/usr/bin/env python3
"""Tests the example `resolve` as a user runs it.

    resolve_test.py PATH_TO_RESOLVE DATA_DIR

DATA_DIR is selftests/data. The last line is "N passed, N failed".
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RESOLVE = ""
REAL = ""  # a root with the lists of a real kernel

KALLSYMS = b"""\
ffffffff81000000 T _stext
ffffffff81000100 T alpha
ffffffff81000200 t beta
ffffffff81000300 t beta.isra.0
ffffffff81000400 T bad_\xff\xfe
ffffffff81000500 T bad_\xc3\xa9
ffffffff81000600 T untraceable
ffffffff81000700 D data
ffffffff81000800 T _etext
ffffffffc0000100 t alpha\t[mod]
"""
ADDRS = b"""\
ffffffff81000104 alpha
ffffffff81000204 beta
ffffffff81000304 beta.isra.0
ffffffff81000400 bad_\xff\xfe
ffffffff81000500 bad_\xc3\xa9
ffffffffc0000104 alpha [mod]
"""

TARGET_TYPES = {
    "name": str, "module": (str, type(None)), "addr": (str, type(None)),
    "type": str, "clone": bool, "btf_id": (int, type(None)), "aliases": list,
    "cookie": int, "requests": list,
}
OMISSION_TYPES = {
    "name": str, "module": (str, type(None)), "addr": (str, type(None)),
    "reason": str, "detail": str, "request": str,
}
UNMATCHED_TYPES = {"request": str, "reason": str, "candidates": list}
STATS_TYPES = {
    "addresses": str, "lines": int, "malformed": int, "malformed_lines": list,
    "opens": dict, "read_ns": int, "match_ns": int, "join_ns": int, "btf_ns": int,
    "total_ns": int,
}


def write(root, path, data):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make_root(root, kallsyms=KALLSYMS, lists=("", "_addrs")):
    """A made-up kernel with the filter lists whose names end like `lists`."""
    write(root, "proc/kallsyms", kallsyms)
    write(root, "proc/sys/kernel/kptr_restrict", b"1\n")
    for end in lists:
        write(root, "sys/kernel/tracing/available_filter_functions" + end,
              ADDRS if end else re.sub(rb"(?m)^[0-9a-f]+ ", b"", ADDRS))
    return root


def gunzip_tree(source, root):
    for folder, _, names in os.walk(source):
        for name in names:
            path = os.path.join(folder, name)
            with gzip.open(path) as file:
                inner = os.path.relpath(path, source)[:-len(".gz")]
                write(root, inner, file.read())


class ResolveTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.temp)
        self.root = make_root(os.path.join(self.temp, "root"))

    def run_resolve(self, *args, root=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(
            [RESOLVE, "--root=" + (root or self.root), *args],
            stderr=subprocess.PIPE, timeout=120, check=False, **options)

    def run_json(self, *args, code=0, **options):
        done = self.run_resolve("--json", *args, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout.decode("utf-8"))

    def names(self, answer):
        return [target["name"] for target in answer["targets"]]

    def assert_types(self, row, types):
        for key, wanted in types.items():
            self.assertIn(key, row)
            self.assertIsInstance(row[key], wanted, key)
            if wanted is int:
                self.assertNotIsInstance(row[key], bool, key)

    # --- usage: exit code 2 ---

    def assert_usage_error(self, *args, says):
        for more in ([], ["--json"]):
            done = self.run_resolve(*more, *args)
            self.assertEqual(done.returncode, 2, args)
            self.assertEqual(done.stdout, b"")
            text = done.stderr.decode()
            self.assertRegex(text, r"\Aresolve: ")
            for part in says:
                self.assertIn(part, text)

    def test_no_request(self):
        self.assert_usage_error(says=["no request", "--help"])

    def test_unknown_flag(self):
        self.assert_usage_error("--nope", "alpha", says=["--nope", "--help"])

    def test_bad_values(self):
        self.assert_usage_error("--max_targets=x", "alpha", says=["--max_targets=x"])
        self.assert_usage_error("--max_targets=-1", "alpha", says=["--max_targets=-1"])
        self.assert_usage_error("--kind=nope", "alpha", says=["--kind=nope"])
        self.assert_usage_error("--kind=", "alpha", says=["--kind", "kprobe.multi"])
        self.assert_usage_error("--json=perhaps", "alpha", says=["--json=perhaps"])
        self.assert_usage_error("alpha", "--max_targets", says=["--max_targets=VALUE"])

    def test_malformed_request_with_its_position(self):
        self.assert_usage_error("alpha", "be[ta", says=["be[ta", "3"])
        self.assert_usage_error("", says=["1"])

    def test_dash_is_no_request(self):
        self.assert_usage_error("-", says=["--requests=-"])

    def test_malformed_request_file_with_its_line(self):
        path = os.path.join(self.temp, "probes.txt")
        write("/", path, b"alpha\n# comment\nbe[ta\n")
        self.assert_usage_error("--requests=" + path, says=["probes.txt:3"])

    def test_missing_request_file(self):
        path = os.path.join(self.temp, "none.txt")
        self.assert_usage_error("--requests=" + path, says=[path])

    def test_help_and_version(self):
        done = self.run_resolve("--help")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = done.stdout.decode()
        for flag in ("--root", "--kind", "--[no]clones", "--[no]report_missing",
                     "--max_targets", "--[no]default_deny", "--requests",
                     "--[no]json", "--[no]verbose"):
            self.assertIn("  " + flag + "\n", text)
        self.assertIn("default: auto", text)
        self.assertNotIn("flagfile", text)
        done = self.run_resolve("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, rb"\Aresolve .*\d+\.\d+")

    # --- failures: exit code 1 ---

    def assert_failure(self, *args, says, **options):
        """Fails with all of `says`; returns the JSON object."""
        done = self.run_resolve(*args, **options)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in says:
            self.assertIn(part, done.stderr.decode())
        answer = self.run_json(*args, code=1, **options)
        for part in says:
            self.assertIn(part, answer["error"])
        self.assert_types(answer["stats"], STATS_TYPES)
        return answer

    def test_missing_root(self):
        nowhere = os.path.join(self.temp, "nowhere")
        answer = self.assert_failure(
            "alpha", root=nowhere, says=[os.path.join(nowhere, "proc/kallsyms"), "root"])
        self.assertEqual(answer["targets"], [])
        self.assertEqual(answer["omissions"], [])
        self.assertEqual(answer["unmatched"], [])
        self.assertEqual(answer["stats"]["lines"], 0)

    def test_max_targets(self):
        answer = self.assert_failure("alpha", "--max_targets=1", says=["2", "1"])
        self.assertEqual(answer["targets"], [])
        self.assertEqual(len(self.run_json("alpha", "--max_targets=2")["targets"]), 2)

    def test_missing_name(self):
        answer = self.assert_failure("alpha", "nosuch", says=["nosuch", "--report_missing"])
        self.assertEqual(self.names(answer), ["alpha", "alpha"])
        self.assertEqual([row["request"] for row in answer["unmatched"]], ["nosuch"])
        reported = self.run_json("alpha", "nosuch", "--report_missing")
        self.assertNotIn("error", reported)
        for key in ("targets", "omissions", "unmatched"):
            self.assertEqual(reported[key], answer[key])

    def test_globs_need_a_filter_list(self):
        root = make_root(os.path.join(self.temp, "bare"), lists=())
        self.assert_failure(
            "al*", root=root, says=["available_filter_functions"])

    def test_closed_stdout(self):
        reader, writer = os.pipe()
        os.close(reader)
        for args in (["*"], ["--json", "*"], ["--help"], ["--version"]):
            done = self.run_resolve(*args, stdout=writer)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn(b"resolve: cannot write the output: Broken pipe", done.stderr)
        os.close(writer)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = self.run_resolve("--json", "alpha", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write the output: No space left", done.stderr)

    # --- BTF, of a real kernel ---

    def test_fentry_multi_shows_the_reasons(self):
        wanted = {"do_exit": "NoReturn", "migrate_disable": "Blacklisted",
                  "_printk": "UnsupportedPrototype", "t_next": "Ambiguous",
                  "ovl_open": "NoModuleBtf"}
        answer = self.run_json("--kind=fexit.multi", "--report_missing", "vfs_read",
                               *wanted, root=REAL)
        self.assertEqual(self.names(answer), ["vfs_read"])
        self.assertIsInstance(answer["targets"][0]["btf_id"], int)
        reasons = {o["name"]: o["reason"] for o in answer["omissions"]
                   if o["reason"] != "NotTraceable"}
        self.assertEqual(reasons, wanted)
        for omission in answer["omissions"]:
            self.assertTrue(omission["detail"], omission)
        opened = [path for path in answer["stats"]["opens"] if "btf" in path]
        self.assertEqual(opened, ["sys/kernel/btf/vmlinux"])

        done = self.run_resolve("--kind=fentry.multi", "--report_missing", "_printk",
                                "t_next", root=REAL)
        text = done.stdout.decode()
        self.assertIn("UnsupportedPrototype, 1 left out", text)
        self.assertIn("takes a variable number of arguments", text)
        self.assertIn("by BTF id the kernel takes the first", text)
        self.assertIn("BTF ", text.splitlines()[-1])

    def test_btf_requests(self):
        vfs_read = self.run_json("--kind=fentry", "vfs_read", root=REAL)["targets"][0]
        request = "btf:%d" % vfs_read["btf_id"]
        answer = self.run_json(request, root=REAL)
        self.assertEqual(self.names(answer), ["vfs_read"])
        self.assertEqual(answer["targets"][0]["btf_id"], vfs_read["btf_id"])
        answer = self.run_json("takes:file@1", root=REAL)
        self.assertIn("vfs_read", self.names(answer))
        done = self.run_resolve("btf:1", root=REAL)
        self.assertEqual(done.returncode, 1)
        self.assertIn("NoSuchBtfId", done.stderr.decode())

    # --- answers ---

    def test_json_keys_and_types(self):
        answer = self.run_json("*", "nosuch", "--report_missing")
        self.assertEqual(list(answer), ["targets", "omissions", "unmatched", "stats"])
        for row in answer["targets"]:
            self.assert_types(row, TARGET_TYPES)
            self.assertRegex(row["addr"], r"\A0x[0-9a-f]{16}\Z")
        for row in answer["omissions"]:
            self.assert_types(row, OMISSION_TYPES)
        for row in answer["unmatched"]:
            self.assert_types(row, UNMATCHED_TYPES)
        self.assert_types(answer["stats"], STATS_TYPES)

    def test_json_values(self):
        answer = self.run_json("alpha", "!mod:*", "untraceable", "bet?", "--report_missing")
        alpha, beta = answer["targets"]
        self.assertEqual(alpha["addr"], "0xffffffff81000100")
        self.assertEqual((alpha["name"], alpha["module"], alpha["type"]), ("alpha", None, "T"))
        self.assertEqual((alpha["clone"], alpha["btf_id"]), (False, None))
        self.assertEqual(alpha["requests"], ["alpha"])
        self.assertEqual([alpha["cookie"], beta["cookie"]], [0, 1])
        self.assertEqual((beta["type"], beta["requests"]), ("t", ["bet?"]))
        untraceable, denied = answer["omissions"]
        self.assertEqual((untraceable["name"], untraceable["reason"]),
                         ("untraceable", "NotTraceable"))
        self.assertEqual((denied["module"], denied["reason"], denied["request"]),
                         ("mod", "Denied", "alpha"))
        self.assertEqual(answer["unmatched"][0]["reason"], "NotTraceable")
        stats = answer["stats"]
        self.assertEqual(stats["addresses"], "full")
        self.assertEqual((stats["lines"], stats["malformed"]), (10, 0))
        self.assertEqual(set(stats["opens"].values()), {1})
        self.assertTrue(any(path.endswith("proc/kallsyms") for path in stats["opens"]))
        self.assertGreaterEqual(stats["total_ns"], stats["read_ns"])

    def test_flags_anywhere(self):
        wanted = self.names(self.run_json("--clones", "--", "beta"))
        self.assertEqual(wanted, ["beta", "beta.isra.0"])
        self.assertEqual(self.names(self.run_json("beta", "--clones")), wanted)
        self.assertEqual(self.names(self.run_json("beta", "-clones")), wanted)
        self.assertEqual(self.names(self.run_json("beta", "--clones", "--noclones")), ["beta"])
        done = subprocess.run(
            [RESOLVE, "beta", "--json", "--root", self.root, "--clones"],
            stdout=subprocess.PIPE, check=True)
        self.assertEqual(self.names(json.loads(done.stdout)), wanted)

    def test_requests_from_stdin_and_command_line(self):
        answer = self.run_json("--requests=-", "beta", input=b"# what\n\nmod:alpha\n")
        self.assertEqual(self.names(answer), ["beta", "alpha"])

    def test_requests_from_file(self):
        path = os.path.join(self.temp, "probes.txt")
        write("/", path, b"vmlinux:alpha # core\nbeta\n")
        answer = self.run_json("--requests", path)
        self.assertEqual(self.names(answer), ["alpha", "beta"])

    def test_names_that_are_not_utf8(self):
        answer = self.run_json("bad_*")
        self.assertEqual(self.names(answer), ["bad_\u00ff\u00fe", "bad_\u00e9"])
        done = self.run_resolve("--json", "bad_*")
        self.assertIn(rb'"bad_\u00ff\u00fe"', done.stdout)
        self.assertIn(b'"bad_\xc3\xa9"', done.stdout)
        table = self.run_resolve("bad_*")
        self.assertIn(rb"bad_\xff\xfe", table.stdout)

    def test_several_kinds(self):
        answer = self.run_json("alpha", "untraceable", "--kind=kprobe.multi,kprobe")
        by_name = {row["name"]: row for row in answer["targets"]}
        self.assertEqual(by_name["untraceable"]["kinds"], ["kprobe"])
        self.assertEqual([(row["kind"], row["reason"])
                          for row in by_name["untraceable"]["misfits"]],
                         [("kprobe.multi", "NotTraceable")])

    def test_malformed_lines(self):
        root = make_root(os.path.join(self.temp, "broken"), b"what\n" + KALLSYMS)
        stats = self.run_json("alpha", root=root)["stats"]
        self.assertEqual((stats["malformed"], stats["malformed_lines"]), (1, [1]))

    def hide_addresses(self, lists):
        kallsyms = re.sub(rb"(?m)^[0-9a-f]{16}", b"0" * 16, KALLSYMS)
        return make_root(os.path.join(self.temp, "hidden"), kallsyms, lists)

    def test_hidden_addresses(self):
        answer = self.run_json("beta", "al*", root=self.hide_addresses([""]))
        self.assertEqual(answer["stats"]["addresses"], "hidden")
        (beta,) = answer["targets"]
        self.assertEqual((beta["name"], beta["addr"]), ("beta", None))
        self.assertEqual({row["reason"] for row in answer["omissions"]}, {"AddressesHidden"})
        self.assertEqual({row["addr"] for row in answer["omissions"]}, {None})
        table = self.run_resolve("beta", root=os.path.join(self.temp, "hidden"))
        self.assertRegex(table.stdout.decode(), r"(?m)^- +t +- +beta$")

    def test_hidden_addresses_from_the_filter_list(self):
        answer = self.run_json("beta", "al*", root=self.hide_addresses(["_addrs"]))
        self.assertEqual(answer["stats"]["addresses"], "hidden")
        self.assertEqual([row["addr"] for row in answer["targets"]],
                         ["0xffffffff81000100", "0xffffffff81000200", "0xffffffffc0000100"])

    def test_table(self):
        done = self.run_resolve("alpha", "untraceable", "nosuch", "--report_missing")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = done.stdout.decode()
        self.assertRegex(text, r"(?m)^ADDRESS +TYPE +MODULE +FUNCTION$")
        self.assertRegex(text, r"(?m)^ffffffff81000100 +T +- +alpha$")
        self.assertRegex(text, r"(?m)^ffffffffc0000100 +t +mod +alpha$")
        self.assertIn("\nNotTraceable, 1 left out:\n", text)
        self.assertRegex(text, r"(?m)^  nosuch +NotFound")
        self.assertIn("\n2 targets, 1 left out, 2 requests without a target; ", text)
        self.assertNotRegex(text, r"(?m) $")

    def test_long_groups_are_cut(self):
        many = KALLSYMS + b"".join(
            b"ffffffff8100%04x t hidden_%d\n" % (0x1000 + 16 * i, i) for i in range(20))
        root = make_root(os.path.join(self.temp, "many"), many)
        text = self.run_resolve("hidden_*", root=root).stdout.decode()
        self.assertIn("NotTraceable, 20 left out:", text)
        self.assertEqual(text.count("  -  hidden_"), 5)
        self.assertIn("… and 15 more (--verbose lists them)", text)
        for flag in ("-v", "--verbose"):
            text = self.run_resolve("hidden_*", flag, root=root).stdout.decode()
            self.assertEqual(text.count("  -  hidden_"), 20)
            self.assertNotIn("more (--verbose", text)

    # --- a real kernel's lists ---

    def test_real_lists(self):
        answer = self.run_json("*", root=REAL)
        self.assertGreater(len(answer["targets"]), 30000)
        self.assertGreater(len(answer["omissions"]), 5000)
        addrs = [row["addr"] for row in answer["targets"]]
        self.assertEqual(addrs, sorted(set(addrs)))
        self.assertEqual([row["cookie"] for row in answer["targets"]], list(range(len(addrs))))
        self.assertEqual(set(answer["stats"]["opens"].values()), {1})
        reasons = {row["reason"] for row in answer["omissions"]}
        self.assertEqual(reasons, {"NotTraceable", "InitSection", "DefaultDenied"})
        more = self.run_json("*", "--nodefault_deny", root=REAL)
        self.assertGreater(len(more["targets"]), len(answer["targets"]))
        self.assertEqual(len(more["targets"]) + len(more["omissions"]),
                         len(answer["targets"]) + len(answer["omissions"]))


def main():
    global RESOLVE, REAL
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    RESOLVE = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as temp:
        REAL = os.path.join(temp, "real")
        gunzip_tree(os.path.join(sys.argv[2], "linux-6.12.95"), REAL)
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(ResolveTest)
        result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
