#include "ksweep/request.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/glob.h"

namespace ksweep {

bool Owner::Matches(std::string_view module) const {
  switch (scope_) {
    case Scope::kAny:
      return true;
    case Scope::kCore:
      return module.empty();
    case Scope::kModule:
      return !module.empty() && GlobMatch(pattern_, module);
  }
  return false;
}

Request Request::Exact(std::string name, Owner owner) {
  return Request(Form::kExact, std::move(name), std::move(owner));
}

absl::StatusOr<Request> Request::Glob(std::string pattern, Owner owner) {
  absl::Status status = CheckGlob(pattern);
  if (status.ok() && owner.is_module()) {
    status = CheckGlob(owner.module_pattern());
  }
  if (!status.ok()) return status;
  return Request(Form::kGlob, std::move(pattern), std::move(owner));
}

Request Request::Address(uint64_t addr) {
  Request request(Form::kAddress, "", Owner::Any());
  request.number_ = addr;
  return request;
}

Request Request::Syscall(std::string name) {
  return Request(Form::kSyscall, std::move(name), Owner::Core());
}

Request Request::BtfId(uint32_t id, std::string module) {
  Owner owner =
      module.empty() ? Owner::Core() : Owner::Module(std::move(module));
  Request request(Form::kBtfId, "", std::move(owner));
  request.number_ = id;
  return request;
}

Request Request::Takes(std::string struct_name, int parameter) {
  Request request(Form::kTakes, std::move(struct_name), Owner::Any());
  request.number_ = static_cast<uint64_t>(parameter);
  return request;
}

Request Request::Matching(std::string label, SymbolPredicate predicate,
                          Owner owner) {
  Request request(Form::kPredicate, std::move(label), std::move(owner));
  request.predicate_ =
      std::make_shared<const SymbolPredicate>(std::move(predicate));
  return request;
}

Request& Request::set_deny(bool deny) {
  deny_ = deny;
  return *this;
}

Request& Request::set_cookie(uint64_t cookie) {
  cookie_ = cookie;
  return *this;
}

Request& Request::set_unique(bool unique) {
  unique_ = unique;
  return *this;
}

bool Request::is_exact() const {
  switch (form_) {
    case Form::kExact:
    case Form::kAddress:
    case Form::kSyscall:
    case Form::kBtfId:
      return true;
    case Form::kGlob:
    case Form::kTakes:
    case Form::kPredicate:
      return false;
  }
  return false;
}

std::string Request::ToString() const {
  std::string text = deny_ ? "!" : "";
  switch (form_) {
    case Form::kExact:
    case Form::kGlob:
    case Form::kPredicate:
      if (owner_.is_core()) text += "vmlinux:";
      if (owner_.is_module()) text += owner_.module_pattern() + ":";
      return text + name_;
    case Form::kAddress:
      return text + absl::StrFormat("0x%x", number_);
    case Form::kSyscall:
      return text + "syscall:" + name_;
    case Form::kBtfId:
      text += "btf:";
      if (owner_.is_module()) text += owner_.module_pattern() + ":";
      return text + absl::StrFormat("%d", number_);
    case Form::kTakes:
      text += "takes:" + name_;
      return parameter() == 0 ? text : text + absl::StrFormat("@%d", number_);
  }
  return text;
}

}  // namespace ksweep
