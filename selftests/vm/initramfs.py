"""Builds the guest's file tree: busybox, the command, its libraries, modules."""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cpio import Archive
from libraries import closure, is_elf, is_static
from modules import ModuleIndex, read_module
from process import VmError, run_tool

GUEST_SOURCES = Path(__file__).parent / "guest"
WORK_FOLDER = "/t"
PROGRAM_FOLDER = "/t/bin"
LIBRARY_FOLDER = "/t/lib"
PATH = (PROGRAM_FOLDER, "/bin", "/sbin", "/usr/bin", "/usr/sbin")

_FOLDERS = ("/proc", "/sys", "/run", "/root", "/var/tmp", "/mnt", PROGRAM_FOLDER)

# For tests that drop their privileges.
_PASSWD = b"root:x:0:0:root:/t:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class Contents:
    """What the user wants in the guest; see `run --help` for the fields' meaning."""

    command: tuple
    programs: tuple = ()
    files: tuple = ()
    environment: tuple = ()
    modules: tuple = ()


def build(kernel, contents, tools, say=lambda text: None):
    """Returns the Archive to boot `kernel` with. `tools` is a folder for vmexit."""
    archive = Archive()
    _add_base(archive, tools)
    _add_kernel_files(archive, kernel)
    _add_modules(archive, kernel, contents.modules, say)
    command, programs = _split_command(contents)
    files = [_parse_file_option(option) for option in contents.files]
    for program in programs:
        archive.add_file(_program_path(program), program, _executable_mode(program))
    for source, target in files:
        _add_tree(archive, source, target)
    libraries = _add_libraries(archive, programs, [source for source, _ in files])
    _check_command(archive, command[0])
    _check_interpreters(archive, programs)
    environment = _environment(kernel, libraries, contents.environment)
    archive.add_bytes("/vm/command", _command_script(command, environment))
    return archive


# ---- The part that is the same for every command


def _add_base(archive, tools):
    for folder in _FOLDERS:
        archive.add_directory(folder)
    archive.add_directory("/tmp", 0o1777)
    archive.add_character_device("/dev/console", 5, 1)
    archive.add_character_device("/dev/null", 1, 3, 0o666)
    _add_busybox(archive)
    archive.add_file("/init", GUEST_SOURCES / "init", 0o755)
    archive.add_file("/vm/vmexit", _compiled_vmexit(Path(tools)), 0o755)
    archive.add_bytes("/etc/passwd", _PASSWD)
    archive.add_bytes("/etc/group", _GROUP)


def _add_busybox(archive):
    busybox = shutil.which("busybox")
    if not busybox or not is_static(busybox):
        raise VmError("no static busybox on this host; install the Debian package busybox-static")
    archive.add_file("/bin/busybox", busybox, 0o755)
    applets = run_tool([busybox, "--list"], "cannot list busybox's applets").decode().split()
    for applet in applets:
        if applet != "busybox":
            archive.add_symlink(f"/bin/{applet}", "busybox")
    # Where scripts' first lines expect it.
    archive.add_symlink("/usr/bin/env", "/bin/busybox")


def _compiled_vmexit(tools):
    source = GUEST_SOURCES / "vmexit.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    program = tools / f"vmexit-{digest}"
    if not program.exists():
        tools.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="partial.", dir=tools) as partial:
            built = Path(partial) / "vmexit"
            run_tool(
                ["cc", "-O2", "-static", "-o", built, source],
                "cannot compile vmexit.c for the guest",
            )
            built.rename(program)
    return program


def _add_kernel_files(archive, kernel):
    archive.add_file(f"/boot/config-{kernel.release}", kernel.config, 0o644)
    archive.add_file(f"/boot/System.map-{kernel.release}", kernel.system_map, 0o644)


def _add_modules(archive, kernel, names, say):
    plan = ModuleIndex(kernel.modules).plan(names) if names else None
    paths = []
    for file in plan.files if plan else ():
        relative = str(file.relative_to(kernel.modules)).split(".ko")[0] + ".ko"
        path = f"/lib/modules/{kernel.release}/{relative}"
        archive.add_bytes(path, read_module(file))
        paths.append(path)
    for name in plan.builtin if plan else ():
        say(f"module {name} is built into {kernel.release}: nothing to load")
    archive.add_bytes("/vm/modules", "".join(f"{path}\n" for path in paths).encode())


# ---- The part that the command needs


def _split_command(contents):
    """A command that is a file here runs from /t/bin; any other is looked up in the guest."""
    first, *arguments = contents.command
    programs = list(contents.programs)
    for program in programs:
        if not os.path.isfile(program):
            raise VmError(f"--program={program}: no such file; build it first")
    if "/" in first and os.path.isfile(first):
        programs.insert(0, first)
        first = _program_path(first)
    return [first, *arguments], programs


def _program_path(program):
    return f"{PROGRAM_FOLDER}/{os.path.basename(program)}"


def _executable_mode(program):
    if not os.access(program, os.X_OK):
        raise VmError(f"{program} is not executable; use chmod +x, or --file if it is no program")
    return 0o755


def _parse_file_option(option):
    """SRC[:DST]; a DST that is not absolute is below /t, one that ends with / is a folder."""
    source, _, target = option.partition(":")
    if not os.path.exists(source):
        raise VmError(f"--file={option}: there is no {source}")
    if not target or target.endswith("/"):
        target += os.path.basename(os.path.abspath(source))
    return source, os.path.normpath(os.path.join(WORK_FOLDER, target))


def _add_tree(archive, source, target):
    if not os.path.isdir(source):
        # Other users of the guest may read whatever umask it was built with.
        archive.add_file(target, source, (os.stat(source).st_mode & 0o777) | 0o444)
        return
    archive.add_directory(target)
    for name in sorted(os.listdir(source)):
        _add_tree(archive, os.path.join(source, name), os.path.join(target, name))


def _add_libraries(archive, programs, file_sources):
    given = [path for path in file_sources if os.path.isfile(path) and is_elf(path)]
    elf_programs = [program for program in programs if is_elf(program)]
    needed = closure(elf_programs + given, extra_libraries=given)
    for path in sorted(needed.fixed):
        if path not in archive:
            archive.add_file(path, path, 0o755)
    for name, path in sorted(needed.loose.items()):
        if f"{LIBRARY_FOLDER}/{name}" not in archive:
            archive.add_file(f"{LIBRARY_FOLDER}/{name}", path, 0o755)
    return needed


def _check_command(archive, name):
    """Found out here, it costs no boot."""
    folders = (WORK_FOLDER,) if "/" in name else PATH
    if any(os.path.normpath(os.path.join(folder, name)) in archive for folder in folders):
        return
    hint = "build it first" if "/" in name else f"say ./{name} if it is a file of this folder"
    raise VmError(f"the command {name} is neither a file here nor a program of the guest; {hint}")


def _check_interpreters(archive, programs):
    for program in programs:
        with open(program, "rb") as file:
            match = re.match(rb"#!\s*(\S+)", file.readline(256))
        interpreter = os.fsdecode(match.group(1)) if match else None
        if interpreter and interpreter not in archive:
            raise VmError(
                f"{program} is a script for {interpreter}, which is not in the guest; write it "
                f"for /bin/sh (busybox), or give --file={interpreter}:{interpreter}"
            )


def _environment(kernel, libraries, given):
    environment = {
        "PATH": ":".join(PATH),
        "HOME": WORK_FOLDER,
        "TERM": "dumb",
        "KSWEEP_VM": "1",
        "KSWEEP_VM_SUITE": kernel.suite,
        "KSWEEP_KERNEL_CONFIG": f"/boot/config-{kernel.release}",
    }
    if libraries.loose:
        environment["LD_LIBRARY_PATH"] = LIBRARY_FOLDER
    for option in given:
        name, separator, value = option.partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise VmError(f"--env={option}: not of the form NAME=VALUE")
        environment[name] = value
    return environment


def _command_script(command, environment):
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    run = "exec /vm/vmexit " + " ".join(shlex.quote(word) for word in command)
    return os.fsencode("\n".join([*exports, run, ""]))
