#!/usr/bin/env python3
"""The tree keeps to its layers, and layering.py would see if it did not."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import layering  # noqa: E402

TOP = pathlib.Path(layering.__file__).resolve().parent.parent


def tree_with(path, text):
    """Complaints about an otherwise empty tree with one file."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for layer in layering.LAYERS:
            (root / "lib" / layer).mkdir(parents=True)
        (root / "include" / "ksweep").mkdir(parents=True)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        return list(layering.check(root))


class Layering(unittest.TestCase):
    def test_this_tree(self):
        self.assertEqual(list(layering.check(TOP)), [])

    def test_what_it_refuses(self):
        cases = (
            ("lib/base/a.cc", '#include "lib/source/b.h"\n'),
            ("lib/base/a.cc", '#include "ksweep/resolve.h"\n'),
            ("lib/source/a.h", '#include "ksweep/attach.h"\n'),
            ("lib/resolve/a.h", '#  include "lib/attach/b.h"\n'),
            ("lib/resolve/a.h", '#include "lib/nowhere/b.h"\n'),
            ("lib/resolve/a.cc", "syscall(SYS_bpf, 0);\n"),
            ("lib/source/a.cc", "#include <bpf/libbpf.h>\n"),
            ("lib/extra/a.cc", "\n"),
            ("include/ksweep/unknown.h", "\n"),
            ("examples/a.cc", '#include "lib/base/b.h"\n'),
        )
        for path, text in cases:
            self.assertEqual(len(tree_with(path, text)), 1, (path, text))

    def test_what_it_allows(self):
        cases = (
            ("lib/resolve/a.cc", '#include "lib/base/b.h"\n'),
            ("lib/resolve/a.cc", '#include "lib/resolve/b.h"\n'),
            ("lib/attach/a.cc", "#include <bpf/libbpf.h>\n"),
            ("lib/base/a.cc", "syscall(SYS_bpf, 0);\n"),
            ("examples/a.cc", '#include "ksweep/attach.h"\n'),
        )
        for path, text in cases:
            self.assertEqual(tree_with(path, text), [], (path, text))


if __name__ == "__main__":
    unittest.main()
