#!/usr/bin/env python3
"""Checks that includes go downwards only.

A layer is a folder of lib/ with the public headers that belong to it. Calls
upwards do not link, because every layer is a static library of its own; what
this finds are includes, which would link.

  layering.py [ROOT]
"""

import pathlib
import re
import sys

# From the bottom to the top: a layer includes itself and those before it.
LAYERS = ("base", "source", "index", "resolve", "attach")

PUBLIC_HEADERS = {
    "status.h": "base",
    "kernel_files.h": "source",
    "symbol.h": "source",
    "symbol_index.h": "index",
    "kind.h": "resolve",
    "module_watch.h": "resolve",
    "request.h": "resolve",
    "resolve.h": "resolve",
    "diff.h": "resolve",
    "attach.h": "attach",
    "features.h": "attach",
    "attachment.h": "attach",
    "link.h": "attach",
    "sections.h": "attach",
    "session.bpf.h": "attach",
    "session.h": "attach",
}

# Only these layers may use what is named, in a header or a source.
DOORS = {
    "SYS_bpf": ("base",),
    "SYS_perf_event_open": ("base",),
    "bpf/libbpf.h": ("attach",),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"(lib|ksweep)/([^"]+)"', re.M)


def layer_of_include(kind, path):
    """The layer a quoted include belongs to; None for an unknown one."""
    if kind == "lib":
        return path.split("/")[0]
    return PUBLIC_HEADERS.get(path)


def complaints_about(path, layer, text, shown):
    """What is wrong with one file of a layer."""
    for match in INCLUDE.finditer(text):
        included = layer_of_include(*match.groups())
        line = text.count("\n", 0, match.start()) + 1
        if included not in LAYERS:
            yield "%s:%d: %s is in no layer" % (shown, line, match.group(0))
        elif LAYERS.index(included) > LAYERS.index(layer):
            yield "%s:%d: %s includes %s, which is above it" % (
                shown, line, layer, included)
    for word, layers in DOORS.items():
        if word in text and layer not in layers:
            yield "%s: only %s may use %s" % (shown, " and ".join(layers), word)


def files_of(root):
    """Every file of a layer, with its layer."""
    for layer in LAYERS:
        for path in sorted((root / "lib" / layer).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path, layer
    for path in sorted((root / "include" / "ksweep").glob("*.h")):
        yield path, PUBLIC_HEADERS.get(path.name)


def check_examples(root):
    """Examples use public headers only."""
    for path in sorted((root / "examples").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        if re.search(r'#\s*include\s+"lib/', path.read_text()):
            yield "%s: an example includes a private header" % (
                path.relative_to(root))


def check(root):
    folders = {p.name for p in (root / "lib").iterdir() if p.is_dir()}
    for folder in sorted(folders - set(LAYERS)):
        yield "lib/%s is no layer; add it to %s" % (folder, __file__)
    for path, layer in files_of(root):
        shown = path.relative_to(root)
        if layer is None:
            yield "%s belongs to no layer; add it to PUBLIC_HEADERS" % shown
        else:
            yield from complaints_about(path, layer, path.read_text(), shown)
    yield from check_examples(root)


def main():
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    complaints = list(check(root))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
