"""All tests, one after the other, and one sum at the end. See `run`."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
VM_RUN = TOP / "selftests" / "vm" / "run"
KERNELS = ("bookworm", "bookworm-backports", "trixie-backports")
# Those with CONFIG_FPROBE: bookworm's is built without.
FPROBE_KERNELS = ("bookworm-backports", "trixie-backports")
# Loaded in the virtual machine for tests of module functions.
VM_MODULES = "dummy,veth"
# And two that share names and BTF ids, with what makes one of them work.
TRAMPOLINE_MODULES = VM_MODULES + ",md4,cifs_md4,algif_hash"

COUNTS = (
    # GoogleTest; the line of the failed ones is there only if there are any.
    (re.compile(r"^\[  PASSED  \] (\d+) test", re.M), "passed"),
    (re.compile(r"^\[  FAILED  \] (\d+) tests?, listed", re.M), "failed"),
    # Our own scripts.
    (re.compile(r"^(\d+) passed, \d+ failed$", re.M), "passed"),
    (re.compile(r"^\d+ passed, (\d+) failed$", re.M), "failed"),
)
UNITTEST = re.compile(r"^Ran (\d+) tests? in", re.M)
UNITTEST_BAD = re.compile(r"^FAILED \((?:failures=(\d+))?(?:, )?(?:errors=(\d+))?",
                          re.M)
SKIPPED = re.compile(r"^\[  SKIPPED \] \S+ \(", re.M)
# What a skipped test says is missing, of GoogleTest and of ours.
WHY_SKIPPED = re.compile(r"(?:: Skipped\n|skipped: )(.*)$", re.M)


def count(output, code):
    """Tests that passed and failed, from what a program printed.

    A program that prints no count is one test; one that ends badly without
    naming a failure has a failure all the same.
    """
    sums = {"passed": 0, "failed": 0}
    for pattern, key in COUNTS:
        for match in pattern.finditer(output):
            sums[key] += int(match.group(1))
    # A script of ours may have said it in both ways.
    if sums == {"passed": 0, "failed": 0}:
        for match in UNITTEST.finditer(output):
            sums["passed"] += int(match.group(1))
        for match in UNITTEST_BAD.finditer(output):
            bad = sum(int(number) for number in match.groups() if number)
            sums["failed"] += bad
            sums["passed"] -= bad
    # GoogleTest counts what it skips as neither.
    if code != 0 and sums["failed"] == 0:
        sums["failed"] = 1
    if code == 0 and sums["passed"] == 0 and not SKIPPED.search(output):
        sums["passed"] = 1
    return sums["passed"], sums["failed"]


class Session:
    """Runs steps, and adds up."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.bad_steps = []

    def add(self, name, code, output, seconds):
        passed, failed = count(output, code)
        self.passed += passed
        self.failed += failed
        print("== %s: %d passed, %d failed (%.1f s)" %
              (name, passed, failed, seconds), flush=True)
        for reason in sorted(set(WHY_SKIPPED.findall(output))):
            print("   skipped: " + reason.strip("' "))
        if failed:
            self.bad_steps.append(name)
            print(output, flush=True)

    def step(self, name, command, **options):
        self.add(name, *run(command, **options))


def run(command, **options):
    """Exit code, output and seconds of a command."""
    start = time.monotonic()
    done = subprocess.run([str(word) for word in command], text=True,
                          errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    return done.returncode, done.stdout, time.monotonic() - start


def must(command, **options):
    """Runs what everything else stands on; ends all if it fails."""
    code, output, seconds = run(command, **options)
    print("== %s (%.1f s)" % (" ".join(str(w) for w in command[:4]), seconds),
          flush=True)
    if code == 0:
        return
    print(output)
    print("0 passed, 1 failed")
    sys.exit(1)


def build(folder, options, compiler=None, target="all"):
    """Configures once, builds always; a second build does nothing."""
    env = dict(os.environ)
    if compiler:
        env.update(CC=compiler[0], CXX=compiler[1])
    if not (folder / "build.ninja").exists():
        must(["meson", "setup", folder, TOP, "-Dwerror=true",
              "-Dexamples=enabled", "-Dtests=enabled"] + options, env=env)
    must(["ninja", "-C", folder, target])


def run_meson_tests(session, folder, label):
    """Each program that meson knows as a test, so that each is counted."""
    listed = subprocess.run(["meson", "introspect", "--tests", str(folder)],
                            check=True, text=True, stdout=subprocess.PIPE)
    for test in json.loads(listed.stdout):
        env = dict(os.environ)
        env.update(test["env"])
        session.step("%s %s" % (label, test["name"]), test["cmd"], env=env,
                     cwd=test["workdir"] or str(folder))


def vm_jobs(folder):
    """Name and command of everything that is run in virtual machines."""
    for kernel in KERNELS:
        yield ("kernel tests on " + kernel,
               [VM_RUN, "--kernel=" + kernel, "--modules=" + VM_MODULES,
                "--timeout=600", "--", folder / "selftests/kernel/kernel_test"])
        yield ("examples on " + kernel,
               [sys.executable, TOP / "selftests/examples/vm_test.py", kernel,
                folder])
    for kernel in FPROBE_KERNELS:
        yield ("trampolines on " + kernel,
               [VM_RUN, "--kernel=" + kernel,
                "--modules=" + TRAMPOLINE_MODULES, "--timeout=600", "--",
                folder / "selftests/kernel/tracing_test"])
        # Little of it, so that it cannot rot; run_attach_bench is for numbers.
        yield ("attach bench on " + kernel,
               [VM_RUN, "--kernel=" + kernel, "--modules=" + VM_MODULES,
                "--timeout=600", "--",
                folder / "selftests/bench/attach/attach_bench", "--smoke"])
    yield "vm runner", [sys.executable, TOP / "selftests/vm/selftest", "--boot"]


def run_vm_jobs(session, folder):
    """Two at a time: each has one processor."""
    must([VM_RUN, "--kernel=all", "--update"])
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        running = {name: pool.submit(run, command)
                   for name, command in vm_jobs(folder)}
        for name, result in running.items():
            session.add(name, *result.result())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-vm", action="store_true",
                        help="only what needs no virtual machine")
    parser.add_argument("--build-root", type=pathlib.Path, default=TOP,
                        help="where build folders go (default: the tree)")
    arguments = parser.parse_args()

    session = Session()
    plain = arguments.build_root / "build"
    sanitized = arguments.build_root / "build-san"
    build(plain, [])
    run_meson_tests(session, plain, "g++")
    session.step("install", [sys.executable, TOP / "selftests/install_test.py",
                             plain])
    # With the other compiler, so that both are known to build it; without the
    # programs for virtual machines, which would not be run.
    build(sanitized, ["-Db_sanitize=address,undefined", "-Db_lundef=false",
                      "-Doptimization=1", "-Dbench=disabled"],
          compiler=("clang-14", "clang++-14"), target="meson-test-prereq")
    run_meson_tests(session, sanitized, "clang++, sanitizers,")
    session.step("benchmarks", ["meson", "test", "-C", plain, "--benchmark",
                                "--print-errorlogs"])
    if not arguments.no_vm:
        run_vm_jobs(session, plain)
    if session.bad_steps:
        print("failed: " + ", ".join(session.bad_steps))
    print("%d passed, %d failed" % (session.passed, session.failed))
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
