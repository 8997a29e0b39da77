"""Real boots; as few as the things to be seen allow."""

import os
import signal
import subprocess
import time
from pathlib import Path

import kernels
from support import LIBRARY, OPTIONS, PROGRAM, RUN, SHARED, TestCase, run


class BootTestCase(TestCase):
    def setUp(self):
        if not OPTIONS.boot:
            self.skipTest("--boot was not given")
        super().setUp()

    def vm(self, *arguments, kernel="bookworm", timeout=60):
        cache = [f"--cache={OPTIONS.cache}"] if OPTIONS.cache else []
        # Temporary files go where their absence can be checked.
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        done = run(
            f"--kernel={kernel}",
            f"--timeout={timeout}",
            *cache,
            *arguments,
            env=dict(os.environ, TMPDIR=str(scratch)),
        )
        self.assertEqual(os.listdir(scratch), [])
        return done

    def assert_ended(self, done, code, *expected):
        text = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, text)
        for part in expected:
            self.assertIn(part, text)


class EverySuiteTest(BootTestCase):
    """One boot per suite, for all that a kernel could do differently."""

    SCRIPT = r"""
printf 'a\r\nb\tc\377\0\1\n'
echo "to stderr" >&2
answer; echo "answer $?"
id -u; pwd; echo "$EXTRA"; ulimit -l; stat -c %a / /tmp
for m in xfs overlay dummy veth tun; do test -d /sys/module/$m && echo "$m"; done
head -n 1 /sys/kernel/tracing/available_filter_functions | grep -q . && echo tracefs
test -d /sys/kernel/debug/kprobes && echo debugfs
test -d /sys/fs/bpf && mount | grep -c ' /sys/fs/bpf type bpf'
mount | grep -c ' /tmp type tmpfs'
test "$KSWEEP_KERNEL_CONFIG" = "/boot/config-$(uname -r)" && grep CONFIG_BPF=y "$KSWEEP_KERNEL_CONFIG"
echo "$KSWEEP_VM $KSWEEP_VM_SUITE"
su nobody -c 'cat /t/data; id -u'
ip -o addr show lo | grep -c 127.0.0.1
"""
    OUTPUT = (
        b"a\r\nb\tc\xff\0\x01\n" b"to stderr\n" b"answer 3\n" b"0\n/t\nx  y\nunlimited\n755\n1777\n"
        b"xfs\noverlay\ndummy\nveth\ntun\n" b"tracefs\ndebugfs\n1\n1\n" b"CONFIG_BPF=y\n" b"1 %s\n"
        b"some data\n65534\n" b"1\n"
    )

    def check(self, suite):
        library = self.compile("lib/libanswer.so", LIBRARY, *SHARED)
        program = self.compile(
            "bin/answer", PROGRAM, library, "-Wl,-rpath,$ORIGIN/../lib"
        )
        done = self.vm(
            "--verbose",
            "--modules=xfs,overlay,dummy,veth,tun",
            f"--program={program}",
            f"--file={self.write('data', 'some data' + chr(10), 0o600)}",
            "--env=EXTRA=x  y",
            "--",
            "sh",
            "-c",
            self.SCRIPT,
            kernel=suite,
        )
        self.assert_ended(done, 0, f"{suite} ", "booted in ")
        self.assertEqual(done.stdout, self.OUTPUT % suite.encode())
        for line in done.stderr.decode(errors="replace").splitlines():
            if "booted in" in line or "ended with" in line:
                print(line)

    def test_bookworm(self):
        self.check("bookworm")

    def test_bookworm_backports(self):
        self.check("bookworm-backports")

    def test_trixie_backports(self):
        self.check("trixie-backports")

    def test_all_gives_the_first_failure(self):
        script = 'test "$KSWEEP_VM_SUITE" = bookworm || exit $((${#KSWEEP_VM_SUITE}))'
        done = self.vm("--", "sh", "-c", script, kernel="all")
        self.assert_ended(done, len("bookworm-backports"), *(f"== {s} ==" for s in kernels.SUITES))


class ExitCodeTest(BootTestCase):
    def test_exit_code_of_a_host_program(self):
        program = self.compile("three", 'int main(void) { return 3; }')
        self.assert_ended(self.vm("--", program), 3)

    def test_highest_code(self):
        self.assert_ended(self.vm("--", "sh", "-c", "exit 125"), 125)

    def test_dashes_of_the_command_are_its_own(self):
        done = self.vm("--", "echo", "--", "a", "--timeout=1")
        self.assert_ended(done, 0)
        self.assertEqual(done.stdout, b"-- a --timeout=1\n")

    def test_signal(self):
        self.assert_ended(self.vm("--", "sh", "-c", "kill -ABRT $$"), 134, "signal 6 (SIGABRT)")

    def test_large_output_is_exact(self):
        blob = self.write("blob", os.urandom(300_000))
        done = self.vm(f"--file={blob}", "--", "cat", "blob")
        self.assert_ended(done, 0)
        self.assertEqual(done.stdout, blob.read_bytes())

    def test_endless_loop(self):
        script = "echo started; echo '<3>a last word' >/dev/kmsg; while :; do :; done"
        done = self.vm("--", "sh", "-c", script, timeout=20)
        self.assert_ended(done, 124, "killed after 20 s, the command ran", "a last word")
        self.assertEqual(done.stdout, b"started\n")

    def test_panic(self):
        done = self.vm("--", "sh", "-c", "echo before; echo c >/proc/sysrq-trigger")
        self.assert_ended(done, 125, "without a result", "Kernel panic")
        self.assertEqual(done.stdout, b"before\n")

    def test_kernel_complaint(self):
        script = "echo '<4>WARNING: made up' >/dev/kmsg; sleep 0.3"
        self.assert_ended(
            self.vm("--", "sh", "-c", script), 126, "the kernel complained (1 line)", "made up"
        )

    def test_icount(self):
        uptimes = []
        for _ in range(2):
            done = self.vm("--icount", "--", "cut", "-d ", "-f1", "/proc/uptime")
            self.assert_ended(done, 0, "tcg, icount")
            uptimes.append(float(done.stdout))
        # The kernel's random numbers still differ, and the file counts in 0.01 s.
        self.assertAlmostEqual(*uptimes, delta=0.03)


class EndOfRunnerTest(BootTestCase):
    """qemu never outlives the runner."""

    def start(self):
        runner = subprocess.Popen(
            [RUN, "--kernel=bookworm", *([f"--cache={OPTIONS.cache}"] if OPTIONS.cache else [])]
            + ["--", "sh", "-c", "echo up; while :; do :; done"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(runner.communicate)
        self.addCleanup(runner.kill)
        self.assertEqual(runner.stdout.readline(), b"up\n", "the output comes live")
        children = _children(runner.pid)
        self.assertEqual(len(children), 1)
        return runner, children[0]

    def check(self, number, code):
        runner, child = self.start()
        runner.send_signal(number)
        self.assertEqual(runner.wait(timeout=10), code)
        deadline = time.monotonic() + 10
        while _is_running(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(_is_running(child))

    def test_sigint(self):
        self.check(signal.SIGINT, 130)

    def test_sigterm(self):
        self.check(signal.SIGTERM, 143)

    def test_sigkill(self):
        self.check(signal.SIGKILL, -signal.SIGKILL)


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
