"""What vm_test.py runs of fentry_args in a guest, and the tests of what it saw."""

import json
import re
import unittest

# Run by vm_test.GUEST's shell, with its functions.
GUEST = r"""
veths() {
	(exec head -c 100 /dev/zero > /dev/null)
	ip link add name ks1 type veth peer name ks2
	ip link del ks1
	sleep 0.1
}
part fa_multi; grep -q bpf_tracing_multi_link /sys/kernel/btf/vmlinux && echo yes
functions="vfs_read hrtimer_nanosleep alloc_netdev_mqs veth:veth_setup"
during fa_json veths fentry_args --json --duration=60 $functions
during fa_fentry veths fentry_args --json --kind=fentry --duration=60 $functions
part fa_text
rm -f /tmp/fa.out
(fentry_args --duration=60 alloc_netdev_mqs > /tmp/fa.out 2>&1; echo "code $?" > /tmp/fa.code) &
i=0
while ! grep -q '^as ' /tmp/fa.out && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done
veths; killall -INT fentry_args; wait; cat /tmp/fa.out /tmp/fa.code
part fa_many; fentry_args 'vfs_*' 'tcp_*'; echo "code $?"
part fa_wrong; fentry_args --kind=kprobe vfs_read; echo "code $?"
part fa_pid; fentry_args --pid=$$ --json --duration=0.5 vfs_read 2> /dev/null; echo "code $?"
part fa_nobody; su -s /bin/sh nobody -c 'PATH=/t/bin:/bin fentry_args --duration=0.1 vfs_read' 2>&1; echo "code $?"
part fa_ended
"""


class FentryArgs(unittest.TestCase):
    """`parts` and `multi`, whether the kernel has fentry.multi, are set by
    vm_test.py."""

    parts = {}
    multi = False

    def calls_of(self, part):
        """Kind, and [(comm, {name: value}), …] by function."""
        self.assertIn("code 0", self.parts[part + "_err"])
        answer = json.loads(self.parts[part])
        self.assertEqual((answer["attached"], answer["lost"]), (4, 0))
        calls = {}
        for call in answer["calls"]:
            args = {a["name"]: a["value"] for a in call["args"]}
            self.assertEqual(len(args), len(call["args"]))
            calls.setdefault(call["function"], []).append((call["comm"], args))
        return answer["kind"], calls

    def test_the_best_kind_is_used(self):
        kind, _ = self.calls_of("fa_json")
        self.assertEqual(kind, "fentry.multi" if self.multi else "fentry")
        self.assertEqual(self.calls_of("fa_fentry")[0], "fentry")
        if not self.multi:
            self.assertRegex(self.parts["fa_json_err"],
                             r"not fentry\.multi \(not known to the kernel")

    def test_numbers_pointers_and_strings(self):
        for part in "fa_json", "fa_fentry":
            with self.subTest(part):
                _, calls = self.calls_of(part)
                reads = [args for comm, args in calls["vfs_read"]
                         if comm == "head" and args["count"] == "4096"]
                self.assertEqual(len(reads), 1)  # as busybox reads
                self.assertEqual(list(reads[0]), ["file", "buf", "count", "pos"])
                self.assertRegex(reads[0]["file"], r"^0xffff[0-9a-f]{12}$")
                self.assertRegex(reads[0]["buf"], r"^0x[0-9a-f]{1,12}$")
                names = [args["name"] for _, args in calls["alloc_netdev_mqs"]]
                self.assertEqual(names[0], "ks1")
                self.assertEqual(len(names), 2)

    def test_enumerators_by_name(self):
        for part in "fa_json", "fa_fentry":
            with self.subTest(part):
                sleeps = [args for comm, args in
                          self.calls_of(part)[1]["hrtimer_nanosleep"]
                          if args["rqtp"] == "100000000"]
                self.assertGreaterEqual(len(sleeps), 1)
                self.assertEqual(sleeps[0]["mode"], "HRTIMER_MODE_REL")

    def test_functions_of_a_module(self):
        for part in "fa_json", "fa_fentry":
            with self.subTest(part):
                setups = self.calls_of(part)[1]["veth_setup"]
                self.assertEqual(len(setups), 2)
                for _, args in setups:
                    self.assertRegex(args["dev"], r"^0xffff[0-9a-f]{12}$")

    def test_a_line_for_each_call(self):
        text = self.parts["fa_text"]
        self.assertRegex(text, r"\nip-\d+ +alloc_netdev_mqs\(sizeof_priv=\d+, "
                         r'name="ks1", name_assign_type=\d, setup=0xffff\w+, '
                         r"txqs=\d+, rxqs=\d+\)\n")
        self.assertIn("\n2 calls, 0 lost", text)
        self.assertIn("code 0", text)

    def test_calls_of_another_process_are_not_printed(self):
        self.assertIn('"calls":[],', self.parts["fa_pid"])
        self.assertIn("code 0", self.parts["fa_pid"])

    def test_what_it_refuses(self):
        self.assertIn("functions match", self.parts["fa_many"]
                      + self.parts["stderr"])
        self.assertIn("code 1", self.parts["fa_many"])
        self.assertIn("code 2", self.parts["fa_wrong"])
        self.assertIn("as root", self.parts["fa_nobody"])
        self.assertIn("code 3", self.parts["fa_nobody"])
