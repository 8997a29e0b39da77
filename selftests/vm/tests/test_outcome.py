"""How a VM is started, and what is made of its end."""

from pathlib import Path
from unittest import mock

import console
import kernels
import kvm
import qemu
import verdict
from support import RUN, TestCase, run


class ConsoleTest(TestCase):
    def console(self, *pieces):
        result = console.Console()
        for piece in pieces:
            result.feed(piece)
        result.close()
        return result

    def test_complaints(self):
        cases = {
            "[ 1.0] WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1": True,
            "[ 1.0] BUG: unable to handle page fault": True,
            "[ 1.0] Oops: 0002 [#1] SMP": True,
            "[ 1.0] general protection fault, probably for address: 0000 [#1] SMP": True,
            "[ 1.0] rcu: INFO: rcu_preempt self-detected stall on CPU": True,
            "[ 1.0] rcu: INFO: rcu_sched detected stalls on CPUs/tasks": True,
            "[ 1.0] Kernel panic - not syncing: sysrq triggered crash": True,
            "[ 1.0] driver installed, CPU: 0 PID: 1 #1 Debian": False,
            "[ 1.0] tsc: Unable to calibrate against PIT": False,
        }
        for line, complains in cases.items():
            self.assertEqual(self.console(line.encode()).complaint_count, int(complains), line)

    def test_lines_may_come_in_pieces(self):
        result = self.console(b"[ 1] a\r\n[ 2] WARN", b"ING: b\r\n[ 3] c")
        self.assertEqual(result.complaint_count, 1)
        self.assertEqual(result.excerpt(), ["[ 2] WARNING: b", "[ 3] c"])

    def test_excerpt_without_complaints_is_the_end(self):
        lines = b"".join(b"%d\n" % number for number in range(1000))
        self.assertEqual(self.console(lines).excerpt(), [str(n) for n in range(960, 1000)])

    def test_excerpt_is_whole_when_it_fits(self):
        for total in (1, 80, 81, 120):
            text = b"before\nBUG: 0\n" + b"".join(b"%d\n" % n for n in range(1, total))
            want = ["BUG: 0"] + [str(n) for n in range(1, total)]
            self.assertEqual(self.console(text).excerpt(), want)

    def test_excerpt_loses_its_middle(self):
        text = b"BUG: 0\n" + b"".join(b"%d\n" % n for n in range(1, 121))
        excerpt = self.console(text).excerpt()
        self.assertEqual(excerpt[79:82], ["79", "[...]", "81"])
        self.assertEqual(excerpt[-1], "120")


class VerdictTest(TestCase):
    def outcome(self, text=b"", **fields):
        result = console.Console()
        result.feed(text)
        return qemu.Outcome(result, **fields)

    def test_codes(self):
        bad = b"[ 1] BUG: x\n"
        cases = (
            (b"", {"how": "exit", "code": 0}, 0, ""),
            (b"", {"how": "exit", "code": 3}, 3, ""),
            (b"", {"how": "exit", "code": 125}, 125, ""),
            (b"", {"how": "exit", "code": 126}, 125, "exit code 126 is reported as 125"),
            (b"", {"how": "exit", "code": 255}, 125, "exit code 255 is reported as 125"),
            (b"", {"how": "signal", "code": 11}, 139, "signal 11 (SIGSEGV)"),
            (b"", {"how": "error", "reason": "no /t"}, 125, "could not be set up: no /t"),
            (b"bye\n", {}, 125, "without a result"),
            (b"bye\n", {"qemu_said": "no memory"}, 125, "qemu said: no memory"),
            (b"bye\n", {"timed_out": True}, 124, "the guest had not booted"),
            (b"bye\n", {"timed_out": True, "boot_seconds": 1.0}, 124, "the command ran"),
            (bad, {"how": "exit", "code": 0}, 126, "BUG: x"),
            (bad, {"how": "exit", "code": 3}, 3, "BUG: x"),
            (bad, {"how": "signal", "code": 6}, 134, "BUG: x"),
            (bad, {"timed_out": True}, 124, "BUG: x"),
        )
        for text, fields, code, expected in cases:
            got = verdict.judge(self.outcome(text, **fields), 5)
            self.assertEqual(got.code, code, fields)
            self.assertIn(expected, "\n".join(got.lines), fields)

    def test_allowed_warnings(self):
        outcome = self.outcome(b"[ 1] WARNING: x\n", how="exit", code=0)
        self.assertEqual(verdict.judge(outcome, 5, allow_warnings=True), verdict.Verdict(0))


class ReportTest(TestCase):
    def test_lines_of_vmexit(self):
        cases = (
            ("exit 0", "exit", 0, ""),
            ("exit 255", "exit", 255, ""),
            ("signal 9", "signal", 9, ""),
            ("error cannot load xfs: no memory", "error", 0, "cannot load xfs: no memory"),
            ("", "", 0, ""),
        )
        for line, how, code, reason in cases:
            outcome = qemu.Outcome(console.Console())
            outcome.take(line)
            self.assertEqual((outcome.how, outcome.code, outcome.reason), (how, code, reason))


class QemuCommandLineTest(TestCase):
    def line(self, **fields):
        machine = qemu.Machine(**fields)
        return " ".join(qemu.command_line(machine, "/vmlinux", 3, 4, 5, 6))

    def test_emulation_has_no_cmpxchg16b(self):
        self.assertIn("-accel tcg,thread=single -cpu max,-cx16 ", self.line())
        self.assertNotIn("icount", self.line())

    def test_kvm(self):
        self.assertIn("-accel kvm -cpu host", self.line(kvm=True))

    def test_icount_is_always_emulation(self):
        line = self.line(kvm=True, icount=True)
        self.assertIn("-accel tcg", line)
        self.assertIn("-icount shift=0,sleep=off", line)

    def test_ports_are_those_of_vmexit(self):
        source = (RUN.parent / "guest/vmexit.c").read_text()
        self.assertIn(f"kResultPort = {qemu.RESULT_PORT:#x}", source)
        self.assertIn(f"kPowerPort = {qemu.POWER_PORT:#x}", source)


class KvmTest(TestCase):
    def boots(self, works, boot_id="id-1", device=None):
        kernel = kernels.Kernel("bookworm", "6.1", "1", Path("/x/6.1_1"))
        device = device or self.write("kvm", "")
        with mock.patch.object(kvm, "DEVICE", str(device)), mock.patch.object(
            kvm, "_boot_id", lambda: boot_id
        ), mock.patch.object(kvm, "_try", return_value=works) as trial:
            return kvm.boots(kernel, self.folder, self.folder), trial.call_count

    def test_tried_once_per_boot_of_the_host(self):
        self.assertEqual(self.boots(True), (True, 1))
        self.assertEqual(self.boots(False), (True, 0))
        self.assertEqual(self.boots(False, "id-2"), (False, 1))
        self.assertEqual(self.boots(True, "id-2"), (False, 0))

    def test_not_tried_without_device(self):
        self.assertEqual(self.boots(True, device=self.folder / "nosuch"), (False, 0))


class OptionsTest(TestCase):
    """Refused before anything is fetched or booted."""

    def test_refused(self):
        cases = (
            (["--", "true"], "--kernel is missing"),
            (["--kernel=6.1"], "COMMAND is missing"),
            (["--kernel=6.1", "true"], "unrecognized arguments: true"),
            (["--kernel=6.13", "--", "true"], "--kernel=6.13: no such kernel"),
            (["--kernel=6.1", "--timeout=0", "--", "true"], "--timeout"),
            (["--kernel=6.1", "--memory=x", "--", "true"], "--memory"),
            (["--kernel=6.1", "--bogus", "--", "true"], "--bogus"),
            (["--kernel=6.1", "--icount", "--cpus=2", "--", "true"], "--icount needs --cpus=1"),
        )
        for arguments, expected in cases:
            done = run(f"--cache={self.folder}", *arguments)
            self.assertEqual(done.returncode, 125, arguments)
            self.assertIn(expected, done.stderr.decode(), arguments)

    def test_unreachable_mirror(self):
        arguments = (f"--mirror=file:{self.folder}/none", f"--cache={self.folder}")
        done = run(*arguments, "--kernel=trixie-backports", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("package index of trixie-backports", done.stderr.decode())

    def test_list_of_an_empty_cache(self):
        done = run("--list", f"--cache={self.folder}")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count(b"not cached\n"), len(kernels.SUITES))
