#!/usr/bin/env python3
"""Makes lib/index/dictionary_data.inc from the kernels in selftests/data.

  dictionary.py TRAINER DATA INC           writes INC
  dictionary.py --check TRAINER DATA INC   fails if INC is not what it would be

The same names give the same dictionary on every machine, so the file in the
tree can be checked. Train anew when a kernel generation brings names of new
kinds; the dictionary is part of every index, so older files stay readable.
"""

import argparse
import gzip
import pathlib
import subprocess
import sys
import tempfile


def unpack(data, folder):
    """The kallsyms of every kernel below `data`, as files in `folder`."""
    texts = []
    for packed in sorted(data.glob("*/proc/kallsyms.gz")):
        text = folder / packed.parent.parent.name
        text.write_bytes(gzip.decompress(packed.read_bytes()))
        texts.append(text)
    if not texts:
        sys.exit("%s: no kernel has a proc/kallsyms.gz there" % data)
    return texts


def train(trainer, data):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        out = folder / "out.inc"
        subprocess.run([trainer, out] + unpack(data, folder), check=True)
        return out.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("trainer")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("inc", type=pathlib.Path)
    args = parser.parse_args()
    made = train(args.trainer, args.data)
    if not args.check:
        args.inc.write_bytes(made)
    elif made != args.inc.read_bytes():
        sys.exit("%s is not what the trainer makes of %s; run the target "
                 "'dictionary'" % (args.inc, args.data))


if __name__ == "__main__":
    main()
