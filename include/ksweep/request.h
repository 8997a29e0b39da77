// What a caller asks for.

#ifndef KSWEEP_REQUEST_H_
#define KSWEEP_REQUEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ksweep/symbol.h"

namespace ksweep {

// Decides about one function. Has to give the same answer for the same symbol,
// and must not touch the resolution under way.
using SymbolPredicate = std::function<bool(const Symbol&)>;

// The owners a request looks in: the core kernel, modules, or any of both.
class Owner {
 public:
  static Owner Any() { return Owner(Scope::kAny, ""); }
  static Owner Core() { return Owner(Scope::kCore, ""); }
  // Modules whose name matches the glob `pattern`. Never the core kernel.
  static Owner Module(std::string pattern) {
    return Owner(Scope::kModule, std::move(pattern));
  }

  bool is_any() const { return scope_ == Scope::kAny; }
  bool is_core() const { return scope_ == Scope::kCore; }
  bool is_module() const { return scope_ == Scope::kModule; }
  const std::string& module_pattern() const { return pattern_; }

  // Whether symbols of `module` (empty: the core kernel) are looked at.
  bool Matches(std::string_view module) const;

 private:
  enum class Scope : uint8_t { kAny, kCore, kModule };
  Owner(Scope scope, std::string pattern)
      : pattern_(std::move(pattern)), scope_(scope) {}

  std::string pattern_;
  Scope scope_;
};

// One thing to trace, or to leave out.
//
// Text forms, for Parse(), request files and command lines:
//
//   vfs_read               that name: every instance, core kernel and modules
//   tcp_*  vfs_?  [a-c]*   a glob on the whole name; bytes, not characters
//   nf_tables:nft_*        a module part, itself a glob on module names
//   vmlinux:x              the core kernel only
//   !pattern               deny; deny wins over everything allowed
//   0xffffffff81234560     the function that starts at, or whose ftrace
//                          location is, that address
//   syscall:openat         the architecture's entry point of a system call
//   btf:1234  btf:nf_tables:130001   a FUNC of the core's or a module's BTF
//   takes:sk_buff  takes:sk_buff@1   functions with a pointer to that struct
//                          among their parameters, or as the first
//
// A wildcard in a module part never matches the core kernel, so `v*:*` is not
// all of vmlinux. In a class `[...]`, `!` or `^` in front negates, `a-z` is a
// range of bytes, and a `]` right at the start is itself.
//
// A value; copying copies its text. Thread-safe for concurrent reads.
class Request {
 public:
  enum class Form : uint8_t {
    kExact,
    kGlob,
    kAddress,
    kSyscall,
    kBtfId,
    kTakes,
    kPredicate,
  };

  // Reads one of the text forms. InvalidArgument names the text, the position
  // (from 1) and what is wrong there.
  static absl::StatusOr<Request> Parse(std::string_view text);

  // Exactly `name`, wildcard characters included.
  static Request Exact(std::string name, Owner owner = Owner::Any());
  // InvalidArgument with the position if the pattern is malformed.
  static absl::StatusOr<Request> Glob(std::string pattern,
                                      Owner owner = Owner::Any());
  static Request Address(uint64_t addr);
  static Request Syscall(std::string name);
  // `module` empty: the core kernel's BTF.
  static Request BtfId(uint32_t id, std::string module = "");
  // `parameter` counts from 1; 0: any.
  static Request Takes(std::string struct_name, int parameter = 0);
  // Functions that `predicate` accepts; `label` stands for it in reports.
  // Called once for each function of a matching owner.
  static Request Matching(std::string label, SymbolPredicate predicate,
                          Owner owner = Owner::Any());

  // Makes this request a deny, an exception to all others. Default: allow.
  // BTF forms cannot deny; Resolve() refuses them.
  Request& set_deny(bool deny = true);
  // The value that bpf_get_attach_cookie() returns in the program for the
  // functions of this request. Default: none, see Target::cookie.
  Request& set_cookie(uint64_t cookie);
  // Demands exactly one function; with more, the request is Ambiguous and
  // serves no target. Default: off.
  Request& set_unique(bool unique = true);

  Form form() const { return form_; }
  bool deny() const { return deny_; }
  bool unique() const { return unique_; }
  const std::optional<uint64_t>& cookie() const { return cookie_; }
  const Owner& owner() const { return owner_; }
  // Name, pattern, system call, struct name or label, by form.
  const std::string& name() const { return name_; }
  uint64_t addr() const { return number_; }
  uint32_t btf_id() const { return static_cast<uint32_t>(number_); }
  int parameter() const { return static_cast<int>(number_); }
  const SymbolPredicate& predicate() const { return *predicate_; }

  // True for the forms that name one thing, so that finding nothing is a
  // mistake: exact names, addresses, system calls, BTF ids.
  bool is_exact() const;

  // The text form, which Parse() reads back (but for predicates).
  std::string ToString() const;

 private:
  Request(Form form, std::string name, Owner owner)
      : name_(std::move(name)), owner_(std::move(owner)), form_(form) {}

  std::string name_;
  Owner owner_;
  std::shared_ptr<const SymbolPredicate> predicate_;
  std::optional<uint64_t> cookie_;
  uint64_t number_ = 0;
  Form form_;
  bool deny_ = false;
  bool unique_ = false;
};

// Reads requests from text, one a line; blank lines and what follows a `#` are
// skipped. Errors name `source` and the line: "probes.txt:3: …".
absl::StatusOr<std::vector<Request>> ParseRequests(std::string_view text,
                                                   std::string_view source);

// The same from a file; "-" is the standard input.
absl::StatusOr<std::vector<Request>> LoadRequests(const std::string& path);

}  // namespace ksweep

#endif  // KSWEEP_REQUEST_H_
