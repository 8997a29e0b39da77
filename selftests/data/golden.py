#!/usr/bin/env python3
"""What ksweep should answer, worked out the slow and obvious way.

    golden.py --root DIR [--kind=kprobe.multi] [--clones] [--nodefault_deny]
              [--list=addrs|plain] -- REQUEST...      print one golden text
    golden.py --all      write golden/<kernel>/<case>.gz for the table CASES
    golden.py --check    work them out again, compare, exit 1 if one differs

It shares nothing with the library: all symbols sit in dicts, every request is
tried on every name, and a glob becomes a regular expression. Names are bytes,
held as latin-1 text. The golden text is described in README.md.
"""

import argparse
import gzip
import os
import re
import struct
import sys
from collections import Counter, defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
CORE = ""  # the owner of a symbol without a module tag

FUNCTION_TYPES = "TtWw"
TYPE_RANK = {"T": 0, "W": 1, "w": 1, "t": 2}

NEVER_PREFIXES = ("__pfx_", "__SCT__", "__cfi_", "__ftrace_invalid_address___")
NEVER_NAME = re.compile(
    r"(%s).*|.*\.cold(\.[0-9]+)?|.*\.cfi_jt|\$[adtx](\..*)?" % "|".join(NEVER_PREFIXES),
    re.DOTALL)

LLVM_SUFFIX = re.compile(r"\.llvm\.[0-9a-fA-F]+$")
# What follows `f` in the name of a clone of f. A hash has at least four digits:
# `_rs.1` or `tsc_start.2` are numbered static objects, not clones.
CLONE_SUFFIX = re.compile(
    r"(\.isra\.[0-9]+|\.constprop\.[0-9]+|\.part\.[0-9]+|\.lto_priv\.[0-9]+)+"
    r"|\.[0-9a-f]{4,}")

DEFAULT_DENY = re.compile(
    r"rcu_.*|arch_cpu_idle|default_idle|bpf_dispatcher_xdp_func|migrate_disable"
    r"|migrate_enable|___migrate_enable|rcu_read_unlock_strict|preempt_count_add"
    r"|preempt_count_sub|__rcu_read_lock|__rcu_read_unlock|bpf_get_numa_node_id",
    re.DOTALL)

# Highest priority first.
SYSCALL_PREFIXES = (
    "__x64_sys_", "__arm64_sys_", "__s390x_sys_", "__riscv_sys_",
    "__powerpc_sys_", "__loongarch_sys_", "__ia32_sys_", "SyS_", "sys_")

PERF_KINDS = ("kprobe", "kretprobe")
MULTI_KINDS = ("kprobe.multi", "kretprobe.multi", "kprobe.session")
BTF_KINDS = ("fentry", "fexit", "fsession",
             "fentry.multi", "fexit.multi", "fsession.multi")


# What the kernel's verifier refuses by name: for every program, and for those
# that run at the return.
TRACE_DENY = """
    ___migrate_enable migrate_disable migrate_enable rcu_read_unlock_strict
    preempt_count_add preempt_count_sub __rcu_read_lock __rcu_read_unlock
    """.split()
TRACE_NO_RETURN = """
    __ia32_sys_exit __ia32_sys_exit_group __kunit_abort kunit_try_catch_throw
    __module_put_and_kthread_exit __x64_sys_exit __x64_sys_exit_group do_exit
    do_group_exit kthread_complete_and_exit kthread_exit make_task_dead
    """.split()


# --- names and patterns ------------------------------------------------------

def is_glob(text):
    return any(c in text for c in "*?[")


def glob_to_regex(pattern):
    """A regex that matches the same whole names. Use with fullmatch()."""
    regex = ""
    i = 0
    while i < len(pattern):
        if pattern[i] == "*":
            regex += ".*"
        elif pattern[i] == "?":
            regex += "."
        elif pattern[i] == "[" and class_end(pattern, i):
            end = class_end(pattern, i)
            regex += class_to_regex(pattern[i + 1:end])
            i = end
        else:
            regex += re.escape(pattern[i])
        i += 1
    return re.compile(regex, re.DOTALL)


def class_end(pattern, start):
    """Index of the `]` that ends the class at `start`; 0 if it never ends."""
    first = start + 1
    if pattern[first:first + 1] in ("!", "^"):
        first += 1
    end = pattern.find("]", first + 1)  # a `]` in first place is a member
    return max(end, 0)


def class_to_regex(body):
    negated = body[0] in "!^"
    if negated:
        body = body[1:]
    members = set()
    while body:
        if len(body) >= 3 and body[1] == "-":
            members.update(range(ord(body[0]), ord(body[2]) + 1))
            body = body[3:]
        else:
            members.add(ord(body[0]))
            body = body[1:]
    if not members:  # [z-a]
        return "." if negated else "(?!)"
    return "[%s%s]" % ("^" if negated else "",
                       "".join("\\x%02x" % m for m in sorted(members)))


def without_llvm(name):
    return LLVM_SUFFIX.sub("", name) if ".llvm." in name else name


def is_never(name, owner):
    return (NEVER_NAME.fullmatch(name) is not None
            or owner == "bpf" or owner.startswith("__builtin__"))


# --- the kernel's lists ------------------------------------------------------

def read_file(path):
    """The bytes of path or path.gz; None if there is neither."""
    if os.path.exists(path):
        with open(path, "rb") as f:
            return f.read()
    if os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz", "rb") as f:
            return f.read()
    return None


def read_lines(root, path):
    data = read_file(os.path.join(root, path))
    if data is None:
        return None
    return [line for line in data.decode("latin-1").split("\n") if line]


def owner_of(tag):
    return tag.strip()[1:-1] if tag.strip() else CORE  # [xfs] -> xfs


class Btf:
    """The types of one object; ids go on where those of `base` end."""

    EXTRA = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8),
             14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12)}
    MODIFIERS = (8, 9, 10, 11, 18)

    def __init__(self, data, base=None):
        header_len, type_off, type_len, str_off, str_len = struct.unpack_from("=5I", data, 4)
        strings = data[header_len + str_off:][:str_len]
        self.strings = (base.strings if base else b"") + strings
        self.types = list(base.types) if base else [(0, 0, 0, ())]
        self.first_id = len(self.types)
        self.ids = {}  # name of a FUNC -> its ids
        at = header_len + type_off
        end = at + type_len
        while at < end:
            name, info, third = struct.unpack_from("=3I", data, at)
            kind, count = info >> 24 & 31, info & 0xffff
            fixed, each = self.EXTRA.get(kind, (0, 0))
            at += 12
            params = ()
            if kind == 13:
                params = struct.unpack_from("=%dI" % (2 * count), data, at)[1::2]
            at += fixed + each * count
            if kind == 12:
                self.ids.setdefault(self.string(name), []).append(len(self.types))
            self.types.append((kind, name, third, params))

    def string(self, offset):
        return self.strings[offset:self.strings.index(b"\0", offset)].decode("latin-1")

    def func_name(self, number):
        """The name if that id is one of its own functions, else None."""
        if not self.first_id <= number < len(self.types) or self.types[number][0] != 12:
            return None
        return self.string(self.types[number][1])

    def bare(self, number):
        while self.types[number][0] in self.MODIFIERS:
            number = self.types[number][2]
        return self.types[number]

    def prototype(self, func):
        _, _, returned, params = self.types[self.types[func][2]]
        return returned, params

    def pointed_struct(self, number):
        pointer = self.bare(number)
        if pointer[0] != 2:
            return None
        kind, name, _, _ = self.bare(pointer[2])
        return self.string(name) if kind in (4, 5, 7) else None

    def size(self, number):
        """(kind, bytes), None for what has no size in registers."""
        kind, _, third, _ = self.bare(number)
        if kind in (0, 2):
            return kind, (0 if kind == 0 else 8)
        return kind, (third if kind in (1, 4, 5, 6, 19) else None)

    def unsupported(self, func, program_kind):
        """True if no trampoline of a current kernel serves the prototype."""
        returned, params = self.prototype(func)
        return_kind, return_size = self.size(returned)
        if return_kind in (4, 5) or return_size is None:
            return True
        if return_size > 8 and not program_kind.startswith("fentry"):
            return True
        if params and params[-1] == 0:
            return True
        words = 0
        for kind, size in map(self.size, params):
            if size is None or size == 0 or size > 16:
                return True
            if kind == 5 and not program_kind.endswith(".multi"):
                return True
            words += (size + 7) // 8
        return words > 12


class Kernel:
    """Everything the folder of one kernel says."""

    def __init__(self, root):
        # (address, owner) -> {name: type}, functions only, never-names left out.
        self.functions = defaultdict(dict)
        # (name, owner) of these functions -> how many symbol lines.
        self.function_lines = Counter()
        self.addresses_of = defaultdict(set)  # the same, as sets; see instances()
        # Data symbols and never-names: name -> owners, address -> names.
        self.other_owners = defaultdict(set)
        self.other_names_at = defaultdict(set)
        self.owners = {CORE}
        self.marks = {}  # core symbol name -> address, any type

        lines = read_lines(root, "proc/kallsyms")
        if lines is None:
            sys.exit("golden.py: %s has no proc/kallsyms" % root)
        for line in lines:
            self.add_symbol(line)

        tracing = "sys/kernel/tracing/available_filter_functions"
        self.plain_list = read_lines(root, tracing)
        self.addrs_list = read_lines(root, tracing + "_addrs")
        self.blacklist = []
        for line in read_lines(root, "sys/kernel/debug/kprobes/blacklist") or []:
            start, end = line.split()[0].split("-")
            self.blacklist.append((int(start, 16), int(end, 16)))

        self.locations = self.join_addrs_list()
        self.root = root
        self.btf_objects = {}  # by owner; None: has none

    def btf(self, owner):
        if owner not in self.btf_objects:
            name = "vmlinux" if owner == CORE else owner
            data = read_file(os.path.join(self.root, "sys/kernel/btf", name))
            base = None if owner == CORE else self.btf(CORE)
            usable = data is not None and (owner == CORE or base is not None)
            self.btf_objects[owner] = Btf(data, base) if usable else None
        return self.btf_objects[owner]

    def btf_owners(self):
        """Those that have BTF, loaded or not."""
        folder = os.path.join(self.root, "sys/kernel/btf")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        names = {n[:-len(".gz")] if n.endswith(".gz") else n for n in names}
        return sorted((names - {"vmlinux"}) | {CORE})

    def instances(self, name, owner):
        """How many functions of that name its owner has."""
        if not self.addresses_of:
            for (address, of), names in self.functions.items():
                for each in names:
                    self.addresses_of[each, of].add(address)
        return len(self.addresses_of[name, owner])

    def add_symbol(self, line):
        address, symbol_type, rest = line.split(" ", 2)
        name, _, tag = rest.partition("\t")
        address, owner = int(address, 16), owner_of(tag)
        self.owners.add(owner)
        if owner == CORE:
            self.marks.setdefault(name, address)
        if symbol_type not in FUNCTION_TYPES or is_never(name, owner):
            self.other_owners[name].add(owner)
            self.other_names_at[address].add(name)
            return
        if address == 0:
            sys.exit("golden.py: hidden addresses are not worked out here")
        names = self.functions[address, owner]
        better = min(symbol_type, names.get(name, symbol_type), key=TYPE_RANK.get)
        names[name] = better
        self.function_lines[name, owner] += 1

    def join_addrs_list(self):
        """(address, owner) -> the ftrace locations that belong to it."""
        joined = defaultdict(set)
        for line in self.addrs_list or []:
            fields = line.split()
            location, name = int(fields[0], 16), fields[1]
            owner = owner_of(fields[2]) if len(fields) > 2 else CORE
            for start in range(location - 8, location + 1):
                names = self.functions.get((start, owner), {})
                if name in names or name in map(without_llvm, names):
                    joined[start, owner].add(location)
        return joined

    def has_function(self, name, owner):
        return self.function_lines[name, owner] > 0

    def in_marks(self, address, first, last):
        return (first in self.marks and last in self.marks
                and self.marks[first] <= address < self.marks[last])

    def outside_text(self, address, owner):
        return (owner == CORE and "_stext" in self.marks and "_etext" in self.marks
                and not self.in_marks(address, "_stext", "_etext"))

    def in_init(self, address, owner):
        return owner == CORE and (
            self.in_marks(address, "__init_begin", "__init_end")
            or self.in_marks(address, "_sinittext", "_einittext"))


class PlainList:
    """The list without addresses: (name, owner) counts on both sides."""

    def __init__(self, kernel):
        self.listed = Counter()
        for line in kernel.plain_list:
            fields = line.split()
            owner = owner_of(fields[1]) if len(fields) > 1 else CORE
            self.listed[without_llvm(fields[0]), owner] += 1
        self.symbols = Counter()
        for (name, owner), lines in kernel.function_lines.items():
            self.symbols[without_llvm(name), owner] += lines

    def counts(self, name, owner):
        key = without_llvm(name), owner
        return self.listed[key], self.symbols[key]


# --- requests ----------------------------------------------------------------

class Request:
    """One request, taken apart.

    `form` is exact, glob, address, syscall, btf (an id) or takes (a struct).
    """

    def __init__(self, index, text, kernel):
        self.index = index
        self.text = text
        self.owner_part = None
        self.deny = text.startswith("!")
        if self.deny:
            text = text[1:]

        if text.startswith("0x"):
            self.form = "address"
            self.need(re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text) and not self.deny)
            self.address = int(text, 16)
        elif text.startswith("syscall:"):
            self.form = "syscall"
            self.syscall = text[len("syscall:"):]
            self.need(self.syscall and not is_glob(self.syscall) and not self.deny)
            self.owner_part = "vmlinux"
            self.name = None  # known when the prefix is
        elif text.startswith("btf:"):
            self.form = "btf"
            parts = re.fullmatch(r"btf:(?:([^:]+):)?([0-9]+)", text)
            self.need(parts and not self.deny)
            self.owner_part = parts.group(1) or "vmlinux"
            self.number = int(parts.group(2))
        elif text.startswith("takes:"):
            self.form = "takes"
            parts = re.fullmatch(r"takes:([^@:]+)(?:@([0-9]+))?", text)
            self.need(parts and not self.deny)
            self.struct = parts.group(1)
            self.parameter = int(parts.group(2) or 0)
        else:
            if ":" in text:
                self.owner_part, text = text.split(":", 1)
                self.need(self.owner_part)
            self.need(text)
            self.form = "glob" if is_glob(text) else "exact"
            self.name = text
            if self.form == "glob":
                self.regex = glob_to_regex(text)
        self.scope = self.owners_in_scope(kernel.owners)

    def need(self, ok):
        if not ok:
            sys.exit("golden.py: malformed request: " + self.text)

    def owners_in_scope(self, owners):
        if self.owner_part is None:
            return owners
        if self.owner_part == "vmlinux":
            return {CORE}
        if not is_glob(self.owner_part):
            return {self.owner_part} & owners
        regex = glob_to_regex(self.owner_part)
        return {o for o in owners if o != CORE and regex.fullmatch(o)}

    def by_name(self):
        return self.form in ("exact", "syscall")

    def btf_owner(self):
        return CORE if self.owner_part == "vmlinux" else self.owner_part

    def btf_names(self, kernel):
        """(owner, name) of the functions that BTF says it is about."""
        if self.form == "btf":
            btf = kernel.btf(self.btf_owner())
            name = btf.func_name(self.number) if btf else None
            return {(self.btf_owner(), name)} if name is not None else set()
        found = set()
        if self.form == "takes" and kernel.btf(CORE) is not None:
            for owner in kernel.btf_owners():
                btf = kernel.btf(owner)
                for name, ids in (btf.ids.items() if btf else ()):
                    if any(self.takes_struct(btf, func) for func in ids):
                        found.add((owner, name))
        return found

    def takes_struct(self, btf, func):
        params = btf.prototype(func)[1]
        if self.parameter:
            params = params[self.parameter - 1:self.parameter]
        return any(btf.pointed_struct(p) == self.struct for p in params)


def find_syscall_prefix(requests, kernel):
    wanted = [r.syscall for r in requests if r.form == "syscall"]
    for prefix in SYSCALL_PREFIXES:
        for name in wanted + ["getpid", "read"]:
            if kernel.has_function(prefix + name, CORE):
                return prefix
    return None


# --- resolving ---------------------------------------------------------------

class Resolver:
    def __init__(self, kernel, texts, kind, clones=False, default_deny=True,
                 plain=False):
        self.kernel = kernel
        self.kind = kind
        self.clones = clones
        self.default_deny = default_deny
        self.use_plain = plain or kernel.addrs_list is None
        self.plain = None
        if kind not in PERF_KINDS and self.use_plain:
            if kernel.plain_list is None:
                sys.exit("golden.py: no filter list: only kind kprobe is possible")
            self.plain = PlainList(kernel)

        self.requests = [Request(i, t, kernel) for i, t in enumerate(texts)]
        self.allows = [r for r in self.requests if not r.deny]
        self.denies = [r for r in self.requests if r.deny]
        prefix = find_syscall_prefix(self.requests, kernel)
        for r in self.requests:
            if r.form == "syscall" and prefix is not None:
                r.name = prefix + r.syscall
        for r in self.requests:
            # Does a function have exactly the requested name? If so, names that
            # differ by .llvm.N are not taken for it.
            r.found = r.by_name() and r.name is not None and any(
                kernel.has_function(r.name, owner) for owner in r.scope)

        self.clones_of = defaultdict(list)  # by name up to the first dot, and owner
        # (owner, name) -> BTF requests that ask for it; there can be thousands.
        self.by_btf = defaultdict(list)
        for r in self.allows:
            if r.form in ("btf", "takes"):
                r.names = r.btf_names(kernel)
                r.candidates = 0
                for key in r.names:
                    self.by_btf[key].append(r)
        self.others = [r for r in self.allows if r.form not in ("btf", "takes")]

        self.targets = []
        self.omissions = []
        self.resolve()
        self.omit_ambiguous()

    # How a request takes a name: "name", "clone" or None.
    def takes(self, r, name, owner):
        if owner not in r.scope:
            return None
        if r.form == "glob":
            hit = r.regex.fullmatch(name) or r.regex.fullmatch(without_llvm(name))
            return "name" if hit else None
        if not r.by_name() or r.name is None or not name.startswith(r.name):
            return None
        if name == r.name:
            return "name"
        if without_llvm(name) == r.name and not r.found:
            return "name"
        if self.clones and not r.deny and is_clone(name, r.name):
            return "clone"
        return None

    def takes_candidate(self, r, address, owner, names):
        if r.form == "address":
            return (r.address == address
                    or r.address in self.joined_locations(address, owner))
        return any(self.takes(r, name, owner) for name in names)

    def joined_locations(self, address, owner):
        if self.kind in PERF_KINDS or self.use_plain:
            return ()  # that list is not read
        return self.kernel.locations.get((address, owner), ())

    def resolve(self):
        for (address, owner), names in sorted(self.kernel.functions.items()):
            matching = [r for r in self.others
                        if self.takes_candidate(r, address, owner, names)]
            by_btf = {r.index: r for name in names for r in self.by_btf.get((owner, name), ())}
            for r in by_btf.values():
                r.candidates += 1
            matching = sorted(matching + list(by_btf.values()), key=lambda r: r.index)
            if not matching:
                continue
            ordered = sorted(names, key=lambda n: self.name_order(n, owner, names))
            row = {
                "address": address, "owner": owner,
                "name": ordered[0], "type": names[ordered[0]],
                "aliases": ordered[1:],
                "clone": self.only_as_clone(ordered[0], owner, matching),
                "requests": [r.index for r in matching],
            }
            row["btf_id"] = self.btf_id(ordered, owner, matching)
            reason = self.why_not(address, owner, ordered, matching)
            if reason is None:
                self.targets.append(row)
            else:
                self.omissions.append(dict(row, reason=reason))

    # A BTF id says a name, and not which of its functions is meant.
    def omit_ambiguous(self):
        ambiguous = {r.index for r in self.allows if r.form == "btf" and r.candidates > 1}
        kept = []
        for t in self.targets:
            served = [i for i in t["requests"] if i not in ambiguous]
            if served:
                kept.append(dict(t, requests=served))
            else:
                self.omissions.append(dict(t, reason="Ambiguous"))
        self.ambiguous = {i for t in self.targets for i in t["requests"]} & ambiguous
        self.targets = kept
        self.omissions.sort(key=lambda o: (o["address"], o["owner"]))

    # The name whose FUNC a function is attached by: its own, unless an alias was
    # asked for by id, or is the only one of its name. Names that no request asks
    # for count only if no other has a FUNC.
    def btf_name(self, ordered, owner, matching):
        btf = self.kernel.btf(owner)
        if btf is None:
            return None
        having = [n for n in ordered if n in btf.ids]
        asked = [n for n in having if self.by_btf.get((owner, n))
                 or any(self.takes(r, n, owner) for r in matching)]
        having = asked or having
        by_id = [n for n in having
                 if any(r.form == "btf" for r in self.by_btf.get((owner, n), ()))]
        only = [n for n in having if self.kernel.instances(n, owner) == 1]
        return (by_id + only + having + [None])[0]

    def btf_id(self, ordered, owner, matching):
        if self.kind not in BTF_KINDS and all(r.form not in ("btf", "takes") for r in matching):
            return 0
        name = self.btf_name(ordered, owner, matching)
        return self.kernel.btf(owner).ids[name][0] if name is not None else 0

    def why_no_trampoline(self, owner, ordered, matching):
        if owner == CORE:
            if any(name in TRACE_DENY for name in ordered):
                return "Blacklisted"
            if (any(name in TRACE_NO_RETURN for name in ordered)
                    and not self.kind.startswith("fentry")):
                return "NoReturn"
        btf = self.kernel.btf(owner)
        if btf is None:
            return "NoBtf" if self.kernel.btf(CORE) is None else "NoModuleBtf"
        name = self.btf_name(ordered, owner, matching)
        if name is None:
            return "NoBtf"
        if self.kernel.instances(name, owner) != 1:
            return "Ambiguous"
        if btf.unsupported(btf.ids[name][0], self.kind):
            return "UnsupportedPrototype"
        return None

    def name_order(self, name, owner, names):
        exactly_requested = any(
            r.by_name() and r.name == name and owner in r.scope for r in self.others)
        exactly_requested |= any(
            r.form == "btf" for r in self.by_btf.get((owner, name), ()))
        return (not exactly_requested, TYPE_RANK[names[name]], len(name), name)

    def only_as_clone(self, name, owner, matching):
        how = ["name" if r in self.by_btf.get((owner, name), ()) else
               self.takes(r, name, owner) for r in matching]
        return "clone" in how and "name" not in how

    def why_not(self, address, owner, names, matching):
        """The reason why a candidate is no target; None if it is one."""
        if any(self.takes(r, name, owner) for r in self.denies for name in names):
            return "Denied"
        if (self.default_deny and any(DEFAULT_DENY.fullmatch(n) for n in names)
                and not any(r.form in ("exact", "syscall", "address", "btf") for r in matching)):
            return "DefaultDenied"
        if self.kind in PERF_KINDS:
            return self.why_not_perf(address, owner)
        reason = self.why_not_listed(address, owner, names)
        if reason is None and self.kind in BTF_KINDS:
            return self.why_no_trampoline(owner, names, matching)
        return reason

    def why_not_perf(self, address, owner):
        kernel = self.kernel
        if any(start <= address < end for start, end in kernel.blacklist):
            return "Blacklisted"
        if kernel.in_init(address, owner):
            return "InitSection"
        if kernel.outside_text(address, owner):
            return "NotTraceable"
        return None

    def why_not_listed(self, address, owner, names):
        untraceable = ("InitSection" if self.kernel.in_init(address, owner)
                       else "NotTraceable")
        if not self.use_plain:
            listed = (address, owner) in self.kernel.locations
            return None if listed else untraceable
        counts = [self.plain.counts(name, owner) for name in names]
        if any(listed == symbols > 0 for listed, symbols in counts):
            return None
        if all(listed == 0 for listed, _ in counts):
            return untraceable
        return "Undecidable"

    # Requests without a target: (index, reason, candidates).
    def unmatched(self):
        served = {i for t in self.targets for i in t["requests"]}
        omitted = defaultdict(list)
        for o in self.omissions:
            for i in o["requests"]:
                omitted[i].append(o)
        return [(r.index,) + self.why_unmatched(r, omitted[r.index])
                for r in self.allows if r.index not in served]

    def why_unmatched(self, r, omitted):
        if r.index in self.ambiguous:
            return "Ambiguous", {o["name"] for o in omitted if o["reason"] == "Ambiguous"}
        if omitted:
            return omitted[0]["reason"], {o["name"] for o in omitted}
        kernel = self.kernel
        if r.form in ("btf", "takes"):
            return self.why_unmatched_btf(r)
        if r.form == "address":
            names = kernel.other_names_at.get(r.address, ())
            return ("NotAFunction" if names else "NotFound"), names
        if r.form == "syscall":
            return "NotFound", {p + r.syscall for p in SYSCALL_PREFIXES
                                if kernel.has_function(p + r.syscall, CORE)}
        if not r.scope:
            return "ModuleNotLoaded", ()
        if r.form == "glob":
            never = r.name.startswith(NEVER_PREFIXES) or r.name.endswith((".cold", ".cfi_jt"))
            return ("NotAFunction" if never else "NotFound"), ()
        if kernel.other_owners.get(r.name, set()) & r.scope:
            return "NotAFunction", {r.name}
        return "NotFound", {name for name, owner in kernel.function_lines
                            if owner in r.scope and is_clone(name, r.name)}

    def why_unmatched_btf(self, r):
        kernel = self.kernel
        if kernel.btf(CORE) is None:
            return "NoBtf", ()
        if r.form == "takes":
            return "NotFound", ()
        owner = r.btf_owner()
        if owner not in kernel.owners:
            return "ModuleNotLoaded", ()
        if kernel.btf(owner) is None:
            return "NoModuleBtf", ()
        if not r.names:
            return "NoSuchBtfId", ()
        (_, name), = r.names
        if owner in kernel.other_owners.get(name, ()):
            return "NotAFunction", ()
        if not self.clones_of:
            for each, of in kernel.function_lines:
                base = CLONE_SUFFIX.search(each)
                if "." in each and base:
                    self.clones_of[each[:each.index(".")], of].append(each)
        return "NotFound", {c for c in self.clones_of[name, owner] if is_clone(c, name)}

    def text(self):
        out = ["kind\t" + self.kind]
        if self.clones:
            out.append("option\tclones")
        if not self.default_deny:
            out.append("option\tnodefault_deny")
        if self.plain is not None:
            out.append("option\tlist=plain")
        for r in self.requests:
            out.append("request\t" + r.text)
        for t in self.targets:
            out.append("target\t0x%016x\t%s\t%s\t%s\t%s\t%s\t%s" % (
                t["address"], t["type"], t["name"], t["owner"] or "-",
                "clone" if t["clone"] else "-", joined(t["aliases"]),
                joined(map(str, t["requests"]))))
        for t in self.targets:
            if t["btf_id"]:
                out.append("btf\t0x%016x\t%s\t%d" % (
                    t["address"], t["owner"] or "-", t["btf_id"]))
        for o in self.omissions:
            out.append("omission\t0x%016x\t%s\t%s\t%s\t%d" % (
                o["address"], o["name"], o["owner"] or "-", o["reason"],
                o["requests"][0]))
        for index, reason, candidates in self.unmatched():
            out.append("unmatched\t%d\t%s\t%s" % (
                index, reason, joined(sorted(candidates))))
        return ("\n".join(out) + "\n").encode("latin-1")


def is_clone(name, base):
    for spelling in (name, without_llvm(name)):
        if (spelling.startswith(base)
                and CLONE_SUFFIX.fullmatch(spelling[len(base):])):
            return True
    return False


def joined(words):
    return ",".join(words) or "-"


# --- the case table ----------------------------------------------------------

EXACT_NAMES = """
    vfs_read tcp_sendmsg bpf_fentry_test1 schedule_timeout __x64_sys_openat
    type_show modalias_show init_once m_next enabled_store
    t_next t_start p_start p_next s_show dummy_handler io_serial_in
    event_filter_write set_root mmio_read stats_show uuid_copy cleanup_module
    jiffies init_task __per_cpu_start __ksymtab_vfs_read
    __pfx_vfs_read __SCT__tp_func_initcall_level do_exit.cold
    finish_task_switch slab_free finish_task_switch.isra.0
    start_kernel rest_init entry_SYSCALL_64 do_int3 memcpy
    xfs_iget nosuch_function_anywhere
    """.split()

DEFAULT_DENIED_NAMES = """
    rcu_core rcu_barrier rcu_read_unlock_strict __rcu_read_lock arch_cpu_idle
    migrate_disable bpf_get_numa_node_id preempt_count_add
    bpf_dispatcher_xdp_func
    """.split()

CLONE_NAMES = """
    finish_task_switch vfs_read tdx_panic virtio_net_hdr_to_skb
    __virtio_net_hdr_to_skb rht_key_get_hash __kmem_cache_create tsc_start _rs
    rcu_tasks_torture_stats_print_generic do_exit nosuch_function_anywhere
    """.split()


class Case:
    def __init__(self, name, requests, kind="kprobe.multi", kernels="all", **options):
        self.name = name
        self.requests = requests
        self.kind = kind
        self.kernels = kernels  # "all", "listed" (with filter lists) or one folder
        self.options = options

    def runs_on(self, folder, kernel):
        if self.kernels == "listed":
            return kernel.addrs_list is not None
        return self.kernels in ("all", folder)

    def work_out(self, kernel):
        # Without a filter list only perf kprobes can be decided.
        kind = self.kind if kernel.addrs_list is not None else "kprobe"
        requests = self.requests(kernel) if callable(self.requests) else self.requests
        return Resolver(kernel, requests, kind, **self.options).text()


def every_core_id(kernel):
    return ["btf:%d" % i for ids in kernel.btf(CORE).ids.values() for i in ids]


def some_module_ids(kernel):
    """By id, in two modules whose ids overlap; the core's id is in neither."""
    texts = []
    for owner in ("veth", "xfs"):
        first = kernel.btf(owner).first_id
        texts += ["btf:%s:%d" % (owner, i) for i in range(first, first + 200)]
    core = kernel.btf(CORE).ids["vfs_read"][0]
    return texts + ["btf:xfs:%d" % core, "btf:vmlinux:%d" % core, "btf:xfs:9999999"]


CASES = [
    # Globs.
    Case("star", ["*"]),
    Case("star-kprobe", ["*"], kind="kprobe", kernels="listed"),
    Case("star-plain", ["*"], plain=True, kernels="listed"),
    Case("vfs", ["vfs_*"]),
    Case("tcp-not-v6", ["tcp_*", "!tcp_v6_*"]),
    Case("class-lock", ["[a-c]*_lock"]),
    Case("class-not-lock", ["*[!a-z]lock*"]),
    Case("question-lock", ["?*?_*_lock?"]),
    Case("class-odd", ["[a-]*_open", "[]x]fs_*", "[^a-z_]*", "v[f-f]s_[!r]*",
                       "*[0-9][0-9][0-9]*", "*[.]isra[.]*", "**_??"]),
    # Exact names.
    Case("exact", EXACT_NAMES),
    Case("exact-plain", EXACT_NAMES, plain=True, kernels="listed"),
    Case("exact-kprobe", EXACT_NAMES, kind="kprobe", kernels="listed"),
    Case("aliases", ["crc32_le", "crc32_be_base", "memset", "__do_sys_getppid",
                     "*_sys_getp*", "_stext", "cpu_show_*", "__sched_text_start"]),
    Case("overlap", ["vfs_r*", "vfs_read", "*_read", "vmlinux:vfs_read",
                     "t_*", "t_next", "*x86_init*", "!vfs_readv", "!*_sys_read"]),
    Case("never", ["__pfx_*", "__pfx_vfs_read", "__SCT__*", "__cfi_*", "*.cold",
                   "do_exit.cold", "$x", "vfs_read.cold", "jiffies"]),
    # Modules.
    Case("module-xfs", ["xfs:xfs_*"]),
    Case("module-any-init", ["*:*init*"]),
    Case("module-core-init", ["vmlinux:*_init"]),
    Case("module-glob", ["x?s:*_[a-c]*"]),
    Case("module-forms", ["nosuchmod:*", "nosuch*:vfs_read", "veth:veth_xmit",
                          "vmlinux:veth_xmit", "tun:vfs_read", "vmlinu?:vfs_read",
                          "*:vfs_read", "[dv]*:*_xmit", "xfs:stats_show",
                          "xfs:__pfx_xfs_iget", "overlay:nosuch_*"]),
    Case("module-kprobe", ["[dtv]*:*"], kind="kprobe", kernels="listed"),
    Case("deny-module", ["xfs:*_open", "ovl_*", "vfs_*", "veth_xmit", "tun:*",
                         "!xfs:xfs_f*", "!overlay:*_[a-m]*", "!vmlinux:ovl_*",
                         "!veth:*", "!nosuchmod:*", "!vfs_read", "!xfs:vfs_write"]),
    # The default deny list.
    Case("default-deny-glob", ["rcu_*", "*rcu_read_*", "migrate_*", "*_idle"]),
    Case("default-deny-exact", ["rcu_*"] + DEFAULT_DENIED_NAMES + ["!rcu_barrier"]),
    Case("default-deny-off", ["rcu_*", "*rcu_read_*", "migrate_*", "*_idle"],
         default_deny=False),
    # Clones.
    Case("clones", CLONE_NAMES, clones=True),
    Case("clones-off", CLONE_NAMES),
    Case("clones-glob", ["finish_task_*", "finish_task_switch", "xfs_*.constprop.?"],
         clones=True),
    # Everything that is not a name.
    Case("syscall", ["syscall:openat", "syscall:getppid", "syscall:nosuch",
                     "syscall:copyarea", "syscall:ni_syscall", "__ia32_sys_getppid"]),
    Case("syscall-nosuch", ["syscall:nosuch"]),
    Case("btf", ["btf:1234", "btf:xfs:130001", "takes:sk_buff", "takes:sk_buff@1",
                 "vfs_read"]),
    Case("btf-every-id", every_core_id, kernels="linux-7.3.4"),
    Case("btf-module-ids", some_module_ids, kernels="listed"),
    Case("btf-module-fentry", some_module_ids, kind="fentry.multi", kernels="listed"),
    Case("btf-none", ["btf:1", "btf:nosuch:7", "btf:tun:140000", "takes:nosuch_struct",
                      "takes:sk_buff@9"], kernels="listed"),
    Case("takes", ["takes:sk_buff@1", "takes:xfs_mount", "takes:net_device@2", "!*_skb*"],
         kernels="listed"),
    # Through BPF trampolines.
    Case("fentry-multi-star", ["*"], kind="fentry.multi", kernels="linux-7.3.4"),
    Case("fentry", ["*_pages*", "sched_*", "[tp]_*", "io_serial_*", "release_*",
                    "*printk*", "migrate_*"], kind="fentry", kernels="listed"),
    Case("fexit-multi", ["do_*", "*_exit*", "*migrate_*", "make_task_*", "__rcu_read_*",
                         "do_exit", "migrate_disable"], kind="fexit.multi", kernels="listed"),
    Case("fsession-module", ["xfs:*", "tun:*", "overlay:ovl_[a-c]*"],
         kind="fsession.multi", kernels="listed"),
    Case("fentry-exact", EXACT_NAMES, kind="fentry.multi", kernels="listed"),
    # In this order: start of vfs_read, start + 4 of vfs_write (its ftrace location),
    # the middle of a function, a data symbol, __pfx_vfs_read (6.1: a type A symbol),
    # rcu_core (kept, though default denied for globs), nothing.
    Case("addresses", ["0xffffffff83949950", "0xffffffff8394a0d4", "0xffffffff83949960",
                       "0xFFFFFFFF849F52B4", "0x1000", "0xffffffff8372bdc0", "0x10"],
         kernels="linux-6.1.0"),
    Case("addresses", ["0xffffffff91e3f690", "0xffffffff91e3ff54", "0xffffffff91e3f6a0",
                       "0xFFFFFFFF92FE2AE8", "0xffffffff91e3f680", "0xffffffff91b85600",
                       "0x10"],
         kernels="linux-6.12.95"),
    Case("addresses", ["0xffffffff9c5b6590", "0xffffffff9c5b6e34", "0xffffffff9c5b65a0",
                       "0xFFFFFFFF9D7C3F70", "0xffffffff9c5b6580", "0xffffffff9c2533c0",
                       "0x10"],
         kernels="linux-7.3.4"),
    # The other kinds that go by the filter list.
    Case("session", ["sched_*", "io_serial_*"], kind="kprobe.session", kernels="listed"),
    Case("kretprobe-multi", ["sched_*", "io_serial_*"], kind="kretprobe.multi",
         kernels="listed"),
]


def golden_texts():
    """(path under golden/, text) for each kernel and case."""
    for folder in sorted(f for f in os.listdir(HERE) if f.startswith("linux-")):
        kernel = Kernel(os.path.join(HERE, folder))
        for case in CASES:
            if case.runs_on(folder, kernel):
                yield "%s/%s.gz" % (folder, case.name), case.work_out(kernel)


def write_all():
    for path, text in golden_texts():
        path = os.path.join(HERE, "golden", path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(gzip.compress(text, 9, mtime=0))


def stored_files():
    golden = os.path.join(HERE, "golden")
    for folder, _, files in os.walk(golden):
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), golden)


def check_all():
    """The texts are compared, not the gzip bytes, which zlib is free to change."""
    good = True
    unknown = set(stored_files())
    for path, text in golden_texts():
        unknown.discard(path)
        stored = read_file(os.path.join(HERE, "golden", path[:-len(".gz")]))
        if stored is None:
            print("golden/%s: missing" % path)
        elif stored != text:
            print("golden/%s: differs" % path)
        else:
            continue
        good = False
    for path in sorted(unknown):
        print("golden/%s: no such case" % path)
    return good and not unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root")
    parser.add_argument("--kind", default="kprobe.multi",
                        choices=MULTI_KINDS + PERF_KINDS + BTF_KINDS)
    parser.add_argument("--clones", action="store_true")
    parser.add_argument("--nodefault_deny", action="store_true")
    parser.add_argument("--list", default="addrs", choices=("addrs", "plain"))
    parser.add_argument("requests", nargs="*", metavar="REQUEST")
    args = parser.parse_args()

    if args.all:
        write_all()
    elif args.check:
        return 0 if check_all() else 1
    elif args.root and args.requests:
        texts = [os.fsencode(t).decode("latin-1") for t in args.requests]
        resolver = Resolver(Kernel(args.root), texts, args.kind, clones=args.clones,
                            default_deny=not args.nodefault_deny,
                            plain=args.list == "plain")
        sys.stdout.buffer.write(resolver.text())
    else:
        parser.error("give --all, --check, or --root and requests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
