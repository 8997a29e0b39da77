#!/usr/bin/env python3
"""Installs the library into a temporary folder and builds a program with it.

    install_test.py BUILD_FOLDER

Also checks that a second build has nothing to do.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = ""
HEADERS = pathlib.Path(__file__).resolve().parent.parent / "include" / "ksweep"

CONSUMER = r"""
#include <cstdio>

#include <ksweep/attach.h>
#include <ksweep/resolve.h>

int main(int argc, char** argv) {
  auto request = ksweep::Request::Parse(argc > 2 ? argv[2] : "f_*");
  if (!request.ok()) return 2;
  auto resolution = ksweep::Resolve({*request}, ksweep::KernelFiles(argv[1]));
  if (!resolution.ok()) {
    std::puts(std::string(resolution.status().message()).c_str());
    return 1;
  }
  for (const ksweep::Target& target : resolution->targets()) {
    std::printf("%.*s\n", static_cast<int>(target.name.size()),
                target.name.data());
  }
  auto attachment = ksweep::AttachFd(*resolution, -1);
  return attachment.ok() ? 3 : 0;
}
"""

# As session.bpf.h shows it.
SESSION_PROGRAM = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <ksweep/session.bpf.h>

__u64 total;

SEC("kprobe.session")
int latency(void *ctx)
{
	__u64 *start = ksweep_session_cookie(ctx);

	if (ksweep_session_is_return(ctx)) {
		__sync_fetch_and_add(&total, bpf_ktime_get_ns() - *start);
		return 0;
	}
	*start = bpf_ktime_get_ns();
	return KSWEEP_SESSION_RUN_RETURN;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError("%s:\n%s" % (" ".join(command), done.stdout))
    return done.stdout


class Install(unittest.TestCase):
    def test_a_program_builds_through_pkg_config(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", name)
            pc_file, = folder.rglob("ksweep.pc")
            headers = {p.name for p in folder.rglob("include/ksweep/*.h")}
            self.assertEqual(headers, {p.name for p in HEADERS.glob("*.h")})
            env = dict(os.environ, PKG_CONFIG_PATH=str(pc_file.parent),
                       PKG_CONFIG_SYSROOT_DIR=name)
            # The sysroot is for our own paths; others are the system's.
            flags = run("pkg-config", "--cflags", "--libs", "--static",
                        "ksweep", env=env).split()
            flags = [f if name not in f or "ksweep" in f or
                     pathlib.Path(f[2:]).exists() else f.replace(name, "", 1)
                     for f in flags]
            (folder / "consumer.cc").write_text(CONSUMER)
            run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-o",
                str(folder / "consumer"), str(folder / "consumer.cc"), *flags)
            root = folder / "root"
            (root / "proc").mkdir(parents=True)
            (root / "proc" / "kallsyms").write_text(
                "ffffffff81000000 t f_one\nffffffff81000100 t f_two\n")
            tracing = root / "sys" / "kernel" / "tracing"
            tracing.mkdir(parents=True)
            (tracing / "available_filter_functions_addrs").write_text(
                "ffffffff81000104 f_two\n")
            self.assertEqual(run(str(folder / "consumer"), str(root)), "f_two\n")

    @unittest.skipUnless(shutil.which("clang"), "no clang, which compiles for BPF")
    def test_a_session_program_compiles_in_both_forms(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", name)
            header, = folder.rglob("include/ksweep/session.bpf.h")
            source = folder / "session.bpf.c"
            source.write_text(SESSION_PROGRAM)
            multiarch = run("g++", "-print-multiarch").strip()
            for is_ctx in "01":
                run("clang", "-target", "bpf", "-g", "-O2", "-Wall", "-Wextra",
                    "-Werror", "-I/usr/include/" + multiarch,
                    "-I" + str(header.parent.parent),
                    "-DKSWEEP_SESSION_CTX=" + is_ctx, "-c", str(source),
                    "-o", str(folder / "session.bpf.o"))

    def test_a_second_build_does_nothing(self):
        self.assertIn("no work to do", run("ninja", "-C", BUILD, "-n"))


def main():
    global BUILD
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    BUILD = sys.argv[1]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Install)
    result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
