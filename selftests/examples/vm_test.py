#!/usr/bin/env python3
"""Runs the examples on a real kernel in a virtual machine.

    vm_test.py SUITE BUILD_FOLDER

SUITE is one of selftests/vm/run's. The last line is "N passed, N failed".
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
VM_RUN = HERE.parent / "vm" / "run"
SUITE = ""
BUILD = pathlib.Path()

# What the guest prints between its parts, and how it runs.
MARK = "=====part "
GUEST = r"""
part() { echo; echo "=====part $1"; }
part config; cat "$KSWEEP_KERNEL_CONFIG"
part check; funccount --check; echo "code $?"
part list; cat /sys/kernel/tracing/available_filter_functions
part resolve; resolve --json '*'
part count; (funccount --json --top=0 --duration=60 '*' > /tmp/out 2> /tmp/err; echo "code $?" > /tmp/code) &
i=0
while ! grep -q '^attached' /tmp/err && [ ! -e /tmp/code ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done
trigger 1000
killall -INT funccount
wait
cat /tmp/out; part count_err; cat /tmp/err /tmp/code
part after; funccount --json --duration=0.1 'vfs_*' 2> /dev/null
part text; funccount --duration=0.5 --top=3 'vfs_*' '!vfs_write'; echo "code $?"
part module; funccount --json --duration=0.1 'dumm?:*' 2> /dev/null
part wrong; funccount --kind=fentry vfs_read; echo "code $?"
part nobody; su -s /bin/sh nobody -c 'PATH=/t/bin:/bin funccount --duration=0.1 "vfs_*"' 2>&1; echo "code $?"
"""

# The kernel benches' unsafe list, as in the library's default deny list.
DENIED = (
    "rcu_*", "arch_cpu_idle", "default_idle", "bpf_dispatcher_xdp_func",
    "migrate_disable", "migrate_enable", "___migrate_enable",
    "rcu_read_unlock_strict", "preempt_count_add", "preempt_count_sub",
    "__rcu_read_lock", "__rcu_read_unlock", "bpf_get_numa_node_id")


def run_guest():
    """The parts of the guest's output, by name."""
    done = subprocess.run(
        [str(VM_RUN), "--kernel=" + SUITE, "--modules=dummy,veth",
         "--env=TERM=dumb", "--timeout=300",
         "--program=%s" % (BUILD / "examples" / "funccount"),
         "--program=%s" % (BUILD / "examples" / "resolve"),
         "--program=%s" % (BUILD / "selftests" / "kernel" / "trigger"),
         "--", "sh", "-c", GUEST],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    parts = {"stderr": done.stderr}
    for piece in done.stdout.split("\n" + MARK)[1:]:
        name, _, text = piece.partition("\n")
        parts[name] = text
    return done.returncode, parts


def listed_functions(text):
    """Names of the filter list without placeholders and denied ones."""
    names = []
    for line in text.splitlines():
        name = line.split(" ")[0]
        if not name or name.startswith("__ftrace_invalid_address___"):
            continue
        if not any(fnmatch.fnmatchcase(name, glob) for glob in DENIED):
            names.append(name)
    return names


class Examples(unittest.TestCase):
    """One boot, then one test for each thing seen in it."""

    @classmethod
    def setUpClass(cls):
        cls.code, cls.parts = run_guest()
        if "CONFIG_" not in cls.parts.get("config", ""):
            raise RuntimeError("the guest did not run: " + cls.parts["stderr"])
        cls.fprobe = "\nCONFIG_FPROBE=y" in cls.parts["config"]

    def json_of(self, part):
        try:
            return json.loads(self.parts[part])
        except ValueError:
            self.fail("%s is no JSON: %s\n%s" % (
                part, self.parts[part][:2000], self.parts["stderr"]))

    def need_fprobe(self):
        if not self.fprobe:
            self.skipTest("skipped: this kernel is built without CONFIG_FPROBE")

    def test_the_guest_ran_to_its_end(self):
        self.assertEqual(self.code, 0, self.parts["stderr"])
        self.assertIn("nobody", self.parts)

    def test_check_says_whether_the_kernel_can(self):
        want = "code 0" if self.fprobe else "code 3"
        self.assertIn(want, self.parts["check"])

    def test_resolve_explains_everything(self):
        self.need_fprobe()
        answer = self.json_of("resolve")
        self.assertNotIn("error", answer)
        self.assertEqual(answer["stats"]["addresses"], "full")
        self.assertEqual(answer["stats"]["malformed"], 0)
        self.assertEqual(set(answer["stats"]["opens"].values()), {1})
        reasons = {o["reason"] for o in answer["omissions"]}
        self.assertLessEqual(
            reasons, {"NotTraceable", "InitSection", "DefaultDenied"})
        self.assertEqual(len(answer["targets"]),
                         len(listed_functions(self.parts["list"])))
        addrs = [int(t["addr"], 16) for t in answer["targets"]]
        self.assertEqual(addrs, sorted(set(addrs)))

    def test_funccount_attaches_all_in_one_link(self):
        self.need_fprobe()
        answer = self.json_of("count")
        self.assertEqual(answer["links"], 1)
        self.assertEqual(answer["attached"],
                         len(listed_functions(self.parts["list"])))
        left_out = len(self.json_of("resolve")["omissions"])
        # BPF programs and trampolines come and go; functions do not.
        self.assertEqual(sum(answer["left_out"].values()), left_out)
        self.assertRegex(self.parts["count_err"],
                         r"attached %d functions in 1 links" % answer["attached"])
        self.assertIn("code 0", self.parts["count_err"])

    def test_a_thousand_calls_are_a_thousand(self):
        self.need_fprobe()
        calls = {f["name"]: f["calls"] for f in self.json_of("count")["functions"]}
        names = [n for n in calls if re.fullmatch(r"__(x64|do)_sys_getppid", n)]
        self.assertEqual(len(names), 1, names)
        self.assertEqual(calls[names[0]], 1000)

    def test_attaching_again_after_it(self):
        self.need_fprobe()
        answer = self.json_of("after")
        self.assertGreater(answer["attached"], 50)

    def test_text_output(self):
        self.need_fprobe()
        text = self.parts["text"]
        self.assertRegex(text, r"attached \d+ functions in 1 links")
        self.assertNotIn("vfs_write ", text)
        self.assertIn("code 0", text)

    def test_module_patterns(self):
        self.need_fprobe()
        answer = self.json_of("module")
        self.assertGreater(answer["attached"], 5)

    def test_a_kind_that_cannot_be_attached(self):
        self.assertRegex(self.parts["wrong"], r"code [13]")

    def test_without_privilege(self):
        self.assertNotIn("code 0", self.parts["nobody"])
        self.assertRegex(self.parts["nobody"], "ermission|permitted")

    def test_a_kernel_without_fprobe_says_so(self):
        if self.fprobe:
            self.skipTest("skipped: this kernel has CONFIG_FPROBE")
        self.assertIn("CONFIG_FPROBE", self.parts["check"])


def main():
    global SUITE, BUILD
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SUITE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2])
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Examples)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
