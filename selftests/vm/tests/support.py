"""What the tests share."""

import argparse
import subprocess
import tempfile
import unittest
from pathlib import Path

from process import VmError, run_tool

RUN = Path(__file__).resolve().parents[1] / "run"

# Set by ../selftest from its own options.
OPTIONS = argparse.Namespace(boot=False, cache=None)

# A library and a program that needs it.
LIBRARY = "int answer(void) { return 3; }"
PROGRAM = "int answer(void); int main(void) { return answer(); }"
SHARED = ("-shared", "-fPIC", "-Wl,-soname,libanswer.so")


class TestCase(unittest.TestCase):
    """Gives each test a folder of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="vm-selftest-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, name, content, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        return path

    def compile(self, name, source, *options):
        output = self.folder / name
        output.parent.mkdir(parents=True, exist_ok=True)
        compiler = ["cc", "-x", "c", "-", "-x", "none", "-o", output]
        run_tool([*compiler, *options], name, input_data=source.encode())
        return output

    def assert_refused(self, expected, function, *arguments):
        with self.assertRaises(VmError) as caught:
            function(*arguments)
        self.assertIn(expected, str(caught.exception))


def with_tool(*argv):
    return lambda data: run_tool(argv, "cannot compress", input_data=data)


def run(*arguments, **options):
    return subprocess.run([RUN, *arguments], capture_output=True, **options)
