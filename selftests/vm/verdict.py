"""Turns the end of a VM into the runner's exit code and an explanation."""

import signal
from dataclasses import dataclass

TIMEOUT = 124
RUNNER_FAILED = 125
KERNEL_COMPLAINED = 126
# Above it, shells and timeout(1) have meanings of their own. A 124 or 125 of the
# command itself cannot be told from the runner's, except by what is on stderr.
HIGHEST_CODE = 125


@dataclass(frozen=True)
class Verdict:
    code: int
    lines: tuple = ()


def judge(outcome, timeout, allow_warnings=False):
    """The command's own failure goes first, then the kernel's complaints."""
    verdict = _judge_end(outcome, timeout)
    count = outcome.console.complaint_count
    if not count or allow_warnings or outcome.how not in ("exit", "signal"):
        return verdict
    heading = f"the kernel complained ({count} {'line' if count == 1 else 'lines'}):"
    lines = (*verdict.lines, heading, *_console(outcome))
    return Verdict(verdict.code or KERNEL_COMPLAINED, lines)


def _judge_end(outcome, timeout):
    if outcome.how == "exit":
        return _judge_exit(outcome.code)
    if outcome.how == "signal":
        return Verdict(128 + outcome.code, (f"the command was ended by {_signal(outcome.code)}",))
    if outcome.how == "error":
        return Verdict(RUNNER_FAILED, (f"the guest could not be set up: {outcome.reason}",))
    console = ("the console:", *_console(outcome))
    if outcome.timed_out:
        reached = "the command ran" if outcome.boot_seconds else "the guest had not booted"
        heading = f"killed after {timeout:g} s, {reached}; a longer limit is set with --timeout"
        return Verdict(TIMEOUT, (heading, *console))
    said = (f"qemu said: {outcome.qemu_said}",) if outcome.qemu_said else ()
    return Verdict(RUNNER_FAILED, ("the guest ended without a result", *said, *console))


def _judge_exit(code):
    if code > HIGHEST_CODE:
        line = f"the command's exit code {code} is reported as {HIGHEST_CODE}"
        return Verdict(HIGHEST_CODE, (line,))
    return Verdict(code)


def _signal(number):
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _console(outcome):
    return ["  " + line for line in outcome.console.excerpt() or ["(nothing)"]]
