"""What vm_test.py runs of watcher in a guest, and the tests of what it saw."""

import json
import re
import unittest

# Run by vm_test.GUEST's shell; each part is in `parts` of the tests.
GUEST = r"""
dummy=$(grep '/dummy\.ko$' /vm/modules)
# A watcher that ended, as without kprobe.multi, takes no commands.
trap '' PIPE
# Waits until the watcher's output has $2 lines that begin with $1, or it ended.
lines() {
	i=0
	while [ "$(cat /tmp/w.out /tmp/w.err | grep -c "^$1")" -lt "$2" ] && [ ! -e /tmp/w.code ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done
}
watch() { # FLAG or REQUEST...
	rm -f /tmp/w.*; touch /tmp/w.out /tmp/w.err; mkfifo /tmp/w.in
	(watcher -i 0.2 "$@" < /tmp/w.in > /tmp/w.out 2> /tmp/w.err; echo "code $?" > /tmp/w.code) &
	exec 9> /tmp/w.in
	lines watching 1
}
end() { exec 9>&-; wait; cat /tmp/w.out; part "$1_err"; cat /tmp/w.err /tmp/w.code; }
device() { ip link add name ksw0 type dummy && ip link del ksw0; }
part watch_modules; rmmod dummy; grep -c '^dummy ' /proc/modules
watch --json 'dummy:*'
insmod $dummy numdummies=0; lines '+ dummy: ' 1
device; rmmod dummy 2>&1; echo "attached: rmmod $?"
rmmod veth; sleep 0.5; insmod $(grep '/veth\.ko$' /vm/modules); sleep 0.5
echo 'release dummy' >&9; lines '- dummy: ' 1
device; echo 'release dummy' >&9; lines watcher: 1
rmmod dummy; echo "released: rmmod $?"; sleep 0.5
insmod $dummy numdummies=0; lines '+ dummy: ' 2
device; device
echo quit >&9
part watch; end watch
rmmod dummy; echo "ended: rmmod $?"; insmod $dummy numdummies=0
part watch_text
watch 'dumm?:*' vmlinux:__x64_sys_getppid
trigger 1000; device
echo nonsense >&9; exec 9>&-; sleep 0.5
killall -INT watcher
end watch_text
part watch_full; watcher --max_slots=2 'dummy:*' < /dev/null 2>&1; echo "code $?"
part watch_wrong; for flag in --interval=0 --max_slots=0 --kind=kprobe,kretprobe --duration=-1; do watcher $flag 'dummy:*' < /dev/null 2>&1; echo "code $?"; done
part watch_single
watch --kind=kprobe --duration=60 'dummy:dummy_set[u]p' 'dummy:dummy_xmi[t]'
device; rmmod dummy; echo "single kprobes: rmmod $?"; lines '- dummy: ' 1
insmod $dummy numdummies=0; lines '+ dummy: ' 2; device
echo quit >&9
end watch_single
trap - PIPE
part watch_ended
"""


class Watcher(unittest.TestCase):
    """`parts` and `fprobe` are set by vm_test.py."""

    parts = {}
    fprobe = False

    def need_fprobe(self):
        if not self.fprobe:
            self.skipTest("skipped: this kernel is built without CONFIG_FPROBE")

    def test_a_module_is_followed(self):
        self.need_fprobe()
        said = self.parts["watch_err"]
        self.assertIn("code 0", said)
        lines = re.findall(r"^[-+w].*$", said, re.M)
        self.assertEqual(lines[0], "watching, 1 request without a target so far")
        first = re.fullmatch(r"\+ dummy: (\d+) functions attached", lines[1])
        self.assertTrue(first, said)
        self.assertGreater(int(first[1]), 5)
        self.assertEqual(lines[2], "- dummy: released")
        self.assertRegex(lines[3], "^watcher: .*dummy", "released already")
        self.assertEqual(lines[4:], [lines[1]])

    def test_a_link_holds_the_module_until_it_is_released(self):
        self.need_fprobe()
        text = self.parts["watch_modules"]
        self.assertTrue(text.startswith("0\n"), text)
        self.assertRegex(text, r"attached: rmmod [1-9]")
        self.assertIn("released: rmmod 0", text)
        self.assertIn("ended: rmmod 0", self.parts["watch_err"])

    def test_calls_of_a_module_over_all_times(self):
        self.need_fprobe()
        answer = json.loads(self.parts["watch"])
        (module,) = answer["modules"]
        self.assertEqual((module["module"], module["times"]), ("dummy", 2))
        said = self.parts["watch_err"]
        cnt = int(re.search(r"\+ dummy: (\d+) functions", said)[1])
        self.assertEqual(module["slots"], 2 * cnt)
        # Three devices while attached, one while not.
        one = re.search(r"\ndummy +1 +\d+ +(\d+)\n", self.parts["watch_text"])
        self.assertEqual(module["calls"], 3 * int(one[1]))

    def test_sweeps_only_for_what_the_requests_look_into(self):
        self.need_fprobe()
        answer = json.loads(self.parts["watch"])
        # At the start, and for each time that dummy was loaded; not for veth.
        self.assertEqual(answer["sweeps"], 3)
        self.assertGreater(answer["polls"], answer["sweeps"])

    def test_the_table_and_the_core_kernel(self):
        self.need_fprobe()
        text, said = self.parts["watch_text"], self.parts["watch_text_err"]
        self.assertIn("code 0", said)
        self.assertRegex(text, r"^\+ vmlinux: 1 function attached\n"
                         r"|\n\+ vmlinux: 1 function attached\n")
        found = re.search(r"\nvmlinux +1 +1 +([\d,]+)\n", text)
        self.assertTrue(found, text)
        self.assertGreaterEqual(int(found[1].replace(",", "")), 1000)
        found = re.search(r"\ndummy +1 +\d+ +(\d+)\n", text)
        self.assertTrue(found, text)
        self.assertGreaterEqual(int(found[1]), 2)
        self.assertIn("\nwatching\n", text)
        self.assertIn(", 1 sweep of kallsyms\n", text)
        self.assertIn("two commands", said)

    def test_too_few_slots(self):
        self.need_fprobe()
        self.assertRegex(self.parts["watch_full"],
                         r"\d+ functions match, and --max_slots is 2\ncode 1")

    def test_wrong_usage(self):
        text = self.parts["watch_wrong"]
        self.assertEqual(text.count("code 2"), 4, text)

    def test_single_kprobes_do_not_hold_the_module(self):
        text = self.parts["watch_single"]
        self.assertIn("single kprobes: rmmod 0", text)
        self.assertIn("code 0", self.parts["watch_single_err"])
        self.assertEqual(
            re.findall(r"^[-+] .*$", text, re.M),
            ["+ dummy: 2 functions attached", "- dummy: unloaded",
             "+ dummy: 2 functions attached"])
        found = re.search(r"\ndummy +2 +4 +(\d+)\n", text)
        self.assertTrue(found, text)
        self.assertGreaterEqual(int(found[1]), 2)

    def test_the_guest_ran_to_its_end(self):
        self.assertIn("watch_ended", self.parts)
