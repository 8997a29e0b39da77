"""What vm_test.py runs of calltrace in a guest, and the tests of what it saw."""

import json
import re
import unittest

# Run by vm_test.GUEST's shell; each part is in `parts` of the tests.
#
# The names exist on all kernels; some are not traceable on each, so that the
# rest of a file's path is found by globs. A trace begins when it is announced.
GUEST = r"""
start() { # FLAG...
	rm -f /tmp/ct.out /tmp/ct.code
	(calltrace "$@" > /tmp/ct.out 2> /tmp/ct.err; echo "code $?" > /tmp/ct.code) &
	i=0
	while ! grep -q '^attached' /tmp/ct.out && [ ! -e /tmp/ct.code ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
}
end() { killall -INT calltrace; wait; cat /tmp/ct.out /tmp/ct.err /tmp/ct.code; }
file_path="do_sys_openat2 getname getname_flags do_filp_open path_openat link_path_walk vfs_open --clones --report_missing --duration=60"
part ct_text
start $file_path
cat /etc/passwd /no/such/file > /dev/null 2>&1
end
part ct_files
start --pair $file_path --perfetto=/tmp/ct.json --folded=/tmp/ct.folded --svg=/tmp/ct.svg
cat /etc/passwd /no/such/file > /dev/null 2>&1
end
part ct_json; cat /tmp/ct.json
part ct_folded; cat /tmp/ct.folded
part ct_svg; cat /tmp/ct.svg
part ct_many; calltrace --kind=kprobe --duration=0.1 'vfs_*' 'tcp_*'; echo "code $?"
part ct_wrong; calltrace --max_depth=65 vfs_read; echo "code $?"
part ct_nobody; su -s /bin/sh nobody -c 'PATH=/t/bin:/bin calltrace --duration=0.1 vfs_read' 2>&1; echo "code $?"
if grep -q '^CONFIG_FPROBE=y' "$KSWEEP_KERNEL_CONFIG"; then
part ct_running
start --duration=60 hrtimer_nanosleep do_nanosleep
sleep 1000 &
sleep 0.3
killall -INT calltrace
i=0; while [ ! -e /tmp/ct.code ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done
killall sleep; end
part ct_tcp
ip link set lo up
start --duration=10 --folded=/tmp/tcp.folded 'tcp_*' 'ip_*'
loopback 10 2000
wait; cat /tmp/ct.out /tmp/ct.err /tmp/ct.code
part ct_tcp_folded; cat /tmp/tcp.folded
part ct_lost
start --duration=60 --buffer=1 --max_depth=4 --pair --folded=/tmp/tcp.folded 'tcp_*' 'ip_*'
killall -STOP calltrace; loopback 4 100; killall -CONT calltrace
end
fi
part ct_ended
"""

LINE = re.compile(
    r"^ *(?P<cpu>\d+)\) (?P<duration>.{14})\|  (?P<indent> *)(?P<text>.*)$")


class Call:
    """A line of the text, or two. Clones have the name of their function."""

    def __init__(self, name):
        self.full_name, self.name = name, name.partition(".")[0]
        self.calls, self.ret, self.us = [], None, None

    def names(self):
        return [c.name for c in self.calls]

    def find(self, name):
        return next(c for c in self.calls if c.name == name)


def parse_trees(text):
    """{"cat-12": [root Call, …]} of the text output. Wrong nesting raises."""
    trees, stack, task = {}, [], None
    for line in text.splitlines():
        head = re.match(r"^(\S.*-\d+), at \d+\.\d+ s", line)
        if head:
            assert not stack, "tree without an end: " + line
            task = head.group(1)
        match = LINE.match(line)
        if not match:
            continue
        depth, text = len(match["indent"]) // 2, match["text"]
        ret = re.search(r"ret=(\S+)", text)
        us = re.search(r"([\d.]+) us", match["duration"])
        if text.startswith("}"):
            call = stack.pop()
            assert re.match(r"\} /\* %s( |$)" % re.escape(call.full_name), text), text
        else:
            call = Call(text.partition("(")[0])
            assert depth == len(stack), "wrong indent: " + line
            siblings = stack[-1].calls if stack else trees.setdefault(task, [])
            siblings.append(call)
        if text.endswith("() {"):
            stack.append(call)
        else:
            call.ret = ret and ret.group(1)
            call.us = us and float(us.group(1))
    assert not stack, "tree without an end"
    return trees


def json_trees(trace):
    """The same from Chrome's JSON: nesting by time, as a viewer does it."""
    names, roots, stacks = {}, {}, {}
    events = trace["traceEvents"]
    for event in events:
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
    calls = [e for e in events if e["ph"] == "X"]
    calls.sort(key=lambda e: (e["tid"], e["ts"], -e["dur"]))
    for event in calls:
        tid, end = event["tid"], round(event["ts"] + event["dur"], 3)
        stack = stacks.setdefault(tid, [])
        while stack and stack[-1][1] <= event["ts"]:
            stack.pop()
        assert not stack or end <= stack[-1][1], "calls that overlap"
        call = Call(event["name"])
        call.us, call.ret = event["dur"], event["args"].get("ret")
        key = "%s-%d" % (names[tid], tid)
        (stack[-1][0].calls if stack else roots.setdefault(key, [])).append(call)
        stack.append((call, end))
    return roots


class Calltrace(unittest.TestCase):
    """`parts` and `fprobe` are set by vm_test.py."""

    parts = {}
    fprobe = False

    def need_fprobe(self):
        if not self.fprobe:
            self.skipTest("skipped: this kernel is built without CONFIG_FPROBE")

    def cat_trees(self, trees):
        found = [calls for task, calls in trees.items() if task.startswith("cat-")]
        self.assertEqual(len(found), 1, list(trees))
        return found[0]

    def traceable(self, *names):
        listed = set(line.split(" ")[0] for line in self.parts["list"].splitlines())
        return [n for n in names if n in listed]

    def check_file_path(self, trees):
        """cat opens /etc/passwd, and a file that is not there."""
        roots = self.cat_trees(trees)
        self.assertEqual({r.name for r in roots}, {"do_sys_openat2"})
        good, bad = roots[-2:]
        getname = self.traceable("getname", "getname_flags")
        self.assertTrue(set(good.names()) & set(getname), good.names())
        middle = good
        if self.traceable("do_filp_open"):
            self.assertEqual(good.names()[-1], "do_filp_open")
            middle = good.calls[-1]
        self.assertEqual(middle.names()[-1], "path_openat")
        path = middle.calls[-1]
        self.assertEqual(path.names()[0], "link_path_walk")
        self.assertEqual(path.names()[-1], "vfs_open")
        self.assertEqual(path.find("vfs_open").ret, "0")
        self.assertRegex(path.ret, "^0x[0-9a-f]{16}$")
        self.assertRegex(good.ret, r"^\d+$")
        self.assertEqual(bad.ret, "-ENOENT")
        self.assertLessEqual(sum(c.us for c in good.calls), good.us)

    def test_text(self):
        text = self.parts["ct_text"]
        self.check_file_path(parse_trees(text))
        # Without fprobe there are single kprobes, a pair for each function.
        links = "1" if self.fprobe else r"\d+"
        self.assertRegex(text, r"attached \d functions in %s links" % links)
        self.assertRegex(text, r"\n[\d,]+ calls in [\d,]+ trees, ")
        self.assertIn("\nlost 0 calls: ", text)
        self.assertRegex(text, r"\noverhead: [\d,]+ runs of BPF programs in ")
        self.assertIn("code 0", text)

    def test_json_is_what_a_viewer_reads(self):
        trace = json.loads(self.parts["ct_json"])
        self.check_file_path(json_trees(trace))
        calls = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        total = re.search(r"\n([\d,]+) calls in ", self.parts["ct_files"])
        self.assertEqual(len(calls), int(total[1].replace(",", "")))
        self.assertEqual(trace["otherData"], {"lost_calls": "0"})

    def test_a_pair_and_no_text_beside_files(self):
        links = "2" if self.fprobe else r"\d+"
        self.assertRegex(self.parts["ct_files"],
                         r"attached \d functions in %s links" % links)
        self.assertNotIn("do_sys_openat2", self.parts["ct_files"])
        self.assertIn("code 0", self.parts["ct_files"])

    def test_folded_stacks_add_up_to_the_json(self):
        total, stacks = 0, {}
        for line in self.parts["ct_folded"].splitlines():
            stack, _, ns = line.rpartition(" ")
            stacks[stack] = int(ns)
            total += int(ns)
        self.assertTrue(any(s.startswith("cat;do_sys_openat2;") and
                            s.endswith(";path_openat;vfs_open") for s in stacks))
        roots = [c for calls in json_trees(json.loads(self.parts["ct_json"])).values()
                 for c in calls]
        self.assertAlmostEqual(total / 1000, sum(c.us for c in roots), delta=1)

    def test_svg_is_xml_with_the_functions(self):
        import xml.dom.minidom  # of the tests, only this one needs it
        svg = xml.dom.minidom.parseString(self.parts["ct_svg"].strip())
        boxes = {}
        for g in svg.getElementsByTagName("g"):
            boxes.setdefault(g.getAttribute("data-name"), []).append(g)
        self.assertEqual(boxes["all"][0].getAttribute("data-w"), "1180.00")
        self.assertIn("path_openat", boxes)
        commands = [g for g in svg.getElementsByTagName("g")
                    if g.getAttribute("data-row") == "1"]
        width = sum(float(g.getAttribute("data-w")) for g in commands)
        self.assertAlmostEqual(width, 1180, delta=2)

    def test_what_is_running_at_the_end(self):
        self.need_fprobe()
        text = self.parts["ct_running"]
        self.assertIn("code 0", text)
        self.assertRegex(text, r"\nsleep-\d+, at .*\n"
                         r" 0\) +\|  hrtimer_nanosleep\(\) \{\n"
                         r" \d\)   running     \|    do_nanosleep\(\);\n"
                         r" \d\)   running     \|  \} /\* hrtimer_nanosleep \*/\n")

    def test_ten_seconds_of_tcp(self):
        self.need_fprobe()
        text = self.parts["ct_tcp"]
        calls = int(re.search(r"\n([\d,]+) calls in ", text)[1].replace(",", ""))
        self.assertGreater(calls, 1000)
        self.assertRegex(text, r"\nlost [\d,]+ calls?: ")
        self.assertRegex(text, r"\noverhead: [\d,]+ runs of BPF programs in [\d.]+ ms")
        self.assertRegex(text, r"attached \d{3} functions in 1 links")
        self.assertIn("code 0", text)
        print("calltrace 'tcp_*' 'ip_*', 10 s:%s" % text[text.index("\n\n"):])
        # In a stack the callers are in the order that the protocol has.
        wanted = re.compile(
            r"^loopback;tcp_sendmsg;(.*;)?tcp_write_xmit;(.*;)?ip_queue_xmit;"
            r"(.*;)?tcp_v4_rcv[; ]", re.M)
        self.assertRegex(self.parts["ct_tcp_folded"], wanted)

    def test_lost_calls_are_counted(self):
        self.need_fprobe()
        text = self.parts["ct_lost"]
        lost = re.search(r"\nlost ([\d,]+) calls: ([\d,]+) as the buffer was full", text)
        self.assertTrue(lost, text)
        self.assertGreater(int(lost[1].replace(",", "")), 0)
        self.assertEqual(lost[1], lost[2])
        self.assertRegex(text, r"\n[\d,]+ calls too deep\n")
        self.assertIn("code 0", text)

    def test_wrong_use(self):
        self.assertIn("--max_depth=65", self.parts["ct_wrong"])
        self.assertIn("code 2", self.parts["ct_wrong"])

    def test_without_privilege(self):
        self.assertNotIn("code 0", self.parts["ct_nobody"])
        self.assertRegex(self.parts["ct_nobody"], "root|ermission|permitted")

    def test_single_kprobes_are_not_for_many(self):
        self.assertRegex(self.parts["ct_many"], r"\d+ functions match, .* at most 100")
        self.assertNotIn("code 0", self.parts["ct_many"])

    def test_the_guest_ran_to_its_end(self):
        self.assertIn("ct_ended", self.parts)
