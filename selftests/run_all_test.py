#!/usr/bin/env python3
"""The sum at the end of all tests counts what it should."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_all  # noqa: E402

CASES = (
    # What was printed, the exit code, and what it counts as.
    ("[  PASSED  ] 12 tests.\n", 0, (12, 0)),
    ("[  PASSED  ] 1 test.\n[  FAILED  ] 2 tests, listed below:\n", 1, (1, 2)),
    # Skipped tests count as neither.
    ("[  PASSED  ] 0 tests.\n[  SKIPPED ] A.B (3 ms)\n", 0, (0, 0)),
    ("Ran 3 tests in 3s\n\nOK\n", 0, (3, 0)),
    ("Ran 3 tests in 3s\n\nFAILED (failures=1, errors=1)\n", 1, (1, 2)),
    ("Ran 11 tests in 3s\n\nOK (skipped=6)\n5 passed, 0 failed\n", 0, (5, 0)),
    ("3 passed, 4 failed\n", 1, (3, 4)),
    # A check that prints no count, a crash, and a crash after some passed.
    ("fine\n", 0, (1, 0)),
    ("", 139, (0, 1)),
    ("2 passed, 0 failed\n", 134, (2, 1)),
)


class Count(unittest.TestCase):
    def test_cases(self):
        for output, code, want in CASES:
            self.assertEqual(run_all.count(output, code), want, output)


if __name__ == "__main__":
    unittest.main()
