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

import calltrace_vm
import fentry_args_vm
import watcher_vm

HERE = pathlib.Path(__file__).resolve().parent
VM_RUN = HERE.parent / "vm" / "run"
SUITE = ""
BUILD = pathlib.Path()

# What the guest prints between its parts, and how it runs.
MARK = "=====part "
GUEST = r"""
part() { echo; echo "=====part $1"; }
# Runs "$@" as part $1, calls $2 as soon as its functions are attached, and ends
# it by Ctrl-C.
during() {
  name=$1; action=$2; shift 2
  rm -f /tmp/out /tmp/err /tmp/code; touch /tmp/err
  ("$@" > /tmp/out 2> /tmp/err; echo "code $?" > /tmp/code) &
  i=0
  while ! grep -q '^attached' /tmp/err && [ ! -e /tmp/code ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
  $action
  killall -INT "$1"
  wait
  part "$name"; cat /tmp/out; part "${name}_err"; cat /tmp/err /tmp/code
}
calls() { trigger 1000; sleep 0.6 | cat > /dev/null; ls /etc > /dev/null; }
fail() { cat /etc/nosuch /etc/passwd/x 2> /dev/null; }
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
part module; funccount --json --by_module --duration=0.3 'dumm?:*' 'vfs_*' 2> /dev/null
part wrong; funccount --kind=fentry vfs_read; echo "code $?"
for way in --kind=auto --pair --kind=kprobe; do
  during latency$way calls funclatency $way --json --duration=60 --report_missing syscall:getppid syscall:openat do_sys_openat2 vfs_read
  [ $way = --kind=kprobe ] || during error$way fail errtrace $way --json --duration=60 --top=0 syscall:openat do_sys_openat2 'do_fil[ep]_open' path_openat 'step_int*' 'link_path_wal*'
done
part latency_text; (while [ ! -e /tmp/done ]; do trigger 10; done) & funclatency -p $$ --duration=0.5 -i 0.2 --histograms=1 --unit=ns syscall:getppid; echo "code $?"; touch /tmp/done; wait
part latency_many; funclatency --kind=kprobe 'vfs_*' 'tcp_*' 2>&1; echo "code $?"
part latency_wrong; for flag in --kind=fentry --unit=h --sort=x --interval=-1 '--pair --kind=kprobe.session'; do funclatency $flag vfs_read; echo "code $?"; done 2>&1
part interval; funccount -v --duration=0.5 -i 0.2 'vfs_*'; echo "code $?"
part minimal; session_minimal 'vfs_*' > /tmp/out 2>&1 &
while kill -0 $! 2> /dev/null; do cat /etc/passwd > /dev/null; done; wait $!; code=$?; cat /tmp/out; echo "code $code"
part nobody_latency; su -s /bin/sh nobody -c 'PATH=/t/bin:/bin funclatency --duration=0.1 "vfs_*"' 2>&1; echo "code $?"
part nobody; su -s /bin/sh nobody -c 'PATH=/t/bin:/bin funccount --duration=0.1 "vfs_*"' 2>&1; echo "code $?"
"""

PROGRAMS = ("errtrace", "calltrace", "fentry_args", "funccount", "funclatency",
            "resolve", "session_minimal", "watcher")
# The kinds behind each way to attach entry and return; auto by the kernel.
SESSION = ["kprobe.session"]
PAIRS = {"--pair": ["kretprobe.multi", "kprobe.multi"],
         "--kind=kprobe": ["kretprobe", "kprobe"]}

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
         "--env=TERM=dumb", "--timeout=600",
         "--program=%s" % (BUILD / "selftests" / "kernel" / "trigger")]
        + ["--program=%s" % (BUILD / "examples" / name) for name in PROGRAMS]
        + ["--program=%s" % (BUILD / "selftests" / "examples" / "loopback")]
        + ["--", "sh", "-c", GUEST + calltrace_vm.GUEST + watcher_vm.GUEST
           + fentry_args_vm.GUEST],
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
        for tests in (calltrace_vm.Calltrace, watcher_vm.Watcher):
            tests.parts, tests.fprobe = cls.parts, cls.fprobe
        fentry_args_vm.FentryArgs.parts = cls.parts
        fentry_args_vm.FentryArgs.multi = "yes" in cls.parts.get("fa_multi", "")

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

    def ways(self):
        """Name and expected kinds of each way to attach both ends."""
        single = PAIRS["--kind=kprobe"]
        yield "--kind=auto", SESSION if self.fprobe else single
        yield "--pair", PAIRS["--pair"] if self.fprobe else single
        yield "--kind=kprobe", single

    def test_latency_of_a_thousand_calls(self):
        for way, kinds in self.ways():
            with self.subTest(way):
                answer = self.json_of("latency" + way)
                self.assertIn("code 0", self.parts["latency%s_err" % way])
                self.assertEqual(sorted(answer["kinds"]), sorted(kinds))
                self.assertEqual(answer["attached"], 4)
                by_name = {f["name"]: f for f in answer["functions"]}
                getppid = [f for name, f in by_name.items()
                           if re.fullmatch(r"__(x64|do)_sys_getppid", name)]
                self.assertEqual([f["calls"] for f in getppid], [1000])
                self.assertEqual([f["unfinished"] for f in getppid], [0])

    def test_latency_numbers_fit_together(self):
        for way, _ in self.ways():
            with self.subTest(way):
                answer = self.json_of("latency" + way)
                everything = answer["functions"] + [answer["all"]]
                for f in everything:
                    counts = f["buckets"]
                    self.assertEqual(sum(counts), f["calls"])
                    least = sum(n << i for i, n in enumerate(counts) if i > 0)
                    most = sum(n << (i + 1) for i, n in enumerate(counts))
                    self.assertLessEqual(least, f["total_ns"])
                    self.assertLess(f["total_ns"], most)
                    self.assertEqual(f["max_ns"].bit_length(), len(counts))
                self.assertEqual(
                    answer["all"]["calls"],
                    sum(f["calls"] for f in answer["functions"]))
                lost = answer["missed"]
                self.assertEqual((lost["lost_entries"], lost["lost_returns"]),
                                 (0, 0))

    def test_latency_of_nested_and_of_sleeping_calls(self):
        for way, _ in self.ways():
            with self.subTest(way):
                answer = self.json_of("latency" + way)
                by_name = {f["name"]: f for f in answer["functions"]}
                outer = by_name[next(n for n in by_name if "sys_openat" in n
                                     and not n.startswith("do_"))]
                inner = by_name["do_sys_openat2"]
                self.assertGreater(inner["calls"], 0)
                self.assertEqual(outer["calls"], inner["calls"])
                self.assertGreaterEqual(outer["total_ns"], inner["total_ns"])
                # One reader of a pipe slept 0.6 s, while others read.
                read = by_name["vfs_read"]
                self.assertGreater(read["max_ns"], 400 * 10**6)
                self.assertGreater(read["calls"], 3)

    def test_latency_of_one_process_in_intervals(self):
        text = self.parts["latency_text"]
        self.assertIn("code 0", text)
        # The calls are those of others.
        self.assertEqual(text.count("\nno call has ended\n"), 3, text)
        self.assertIn("\n0 calls in ", text)
        self.assertRegex(text, r"attached 1 functions in \d links")
        self.assertRegex(text, r"missed \d+ hits?: ")

    def test_too_many_functions_for_single_kprobes(self):
        text = self.parts["latency_many"]
        self.assertRegex(text, r"\d{3} functions match, .* at most 100")
        self.assertIn("code 1", text)

    def test_wrong_usage_of_funclatency(self):
        text = self.parts["latency_wrong"]
        self.assertEqual(text.count("code 2"), 5, text)
        for flag in ("--kind=fentry", "--unit=h", "--sort=x", "--interval=-1",
                     "--kind=kprobe.session --pair"):
            self.assertIn(flag, text)

    def test_where_an_error_came_from(self):
        # Without fprobe both are by single kprobes.
        for way in "--kind=auto", "--pair":
            with self.subTest(way):
                answer = self.json_of("error" + way)
                self.assertIn("code 0", self.parts["error%s_err" % way])
                chains = [(c["error"], c["functions"]) for c in answer["chains"]
                          if c["comm"] == "cat"]
                self.assertEqual([error for error, _ in chains],
                                 ["ENOENT", "ENOTDIR"], chains)
                (_, missing), (_, not_a_folder) = chains
                up = missing[missing.index("path_openat"):]
                self.assertRegex(" ".join(up), r"^path_openat do_fil[ep]_open "
                                 r"do_sys_openat2 __x64_sys_openat$")
                # The name is looked up below path_openat().
                self.assertRegex(missing[0], r"^(step_into|path_openat)")
                self.assertRegex(not_a_folder[0], r"^link_path_walk")
                self.assertEqual(not_a_folder[-len(up):], up)
                firsts = {(e["error"], e["first"]): e["times"]
                          for e in answer["errors"]}
                self.assertGreaterEqual(firsts[("ENOENT", missing[0])], 1)
                self.assertGreaterEqual(firsts[("ENOTDIR", not_a_folder[0])], 1)
                self.assertEqual((answer["lost_events"], answer["lost_calls"]),
                                 (0, 0))

    def test_counts_by_module(self):
        self.need_fprobe()
        answer = self.json_of("module")
        self.assertIn(None, [m["module"] for m in answer["modules"]])
        self.assertEqual(sum(m["calls"] for m in answer["modules"]),
                         answer["total_calls"])
        self.assertEqual(sum(m["functions"] for m in answer["modules"]),
                         answer["functions_called"])

    def test_counts_in_intervals(self):
        self.need_fprobe()
        text = self.parts["interval"]
        self.assertIn("code 0", text)
        self.assertEqual(text.count("\nFUNCTION "), 3, text)
        self.assertNotIn("@", text)

    def test_the_report_of_the_attach(self):
        self.need_fprobe()
        self.assertRegex(self.parts["interval"],
                         r"kprobe\.multi: attached \d+ functions in 1 link, 0 refused")

    def test_the_smallest_program(self):
        text = self.parts["minimal"]
        if not self.fprobe:
            self.assertIn("CONFIG_FPROBE", text)
            self.assertIn("code 1", text)
            return
        found = re.search(r"(\d+) functions, (\d+) calls, (\d+\.\d) us each", text)
        self.assertIsNotNone(found, text)
        self.assertGreater(int(found[1]), 50)
        self.assertGreater(int(found[2]), 20)
        self.assertIn("code 0", text)

    def test_latency_without_privilege(self):
        text = self.parts["nobody_latency"]
        self.assertRegex(text, "[Pp]ermission denied")
        self.assertIn("as root", text)
        self.assertIn("code 3", text)

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
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    # In this order: the first boots the guest.
    suite = unittest.TestSuite(
        [load(Examples), load(calltrace_vm.Calltrace), load(watcher_vm.Watcher),
         load(fentry_args_vm.FentryArgs)])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
