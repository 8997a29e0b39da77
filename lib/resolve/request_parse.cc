#include <cerrno>
#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"
#include "ksweep/request.h"
#include "lib/base/abseil.h"
#include "lib/base/glob.h"

namespace ksweep {
namespace {

// One text under way. Positions are counted from 1 in the whole of it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

  absl::StatusOr<Request> Parse();

 private:
  absl::StatusOr<Request> ParseForm();
  absl::StatusOr<Request> ParseAddress();
  absl::StatusOr<Request> ParseSyscall();
  absl::StatusOr<Request> ParseBtfId();
  absl::StatusOr<Request> ParseTakes();
  absl::StatusOr<Request> ParsePattern();

  bool Skip(std::string_view prefix) {
    if (rest_.substr(0, prefix.size()) != prefix) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  size_t position() const { return text_.size() - rest_.size() + 1; }
  absl::Status Error(size_t position, std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("malformed request '%s' at position %d: %s", Av(text_),
                        position, Av(what)));
  }
  absl::Status CheckBytes() const;
  absl::Status CheckPlainName(std::string_view name, size_t position) const;
  // Of the start of what is left.
  absl::Status CheckPattern(std::string_view pattern) const;
  absl::StatusOr<uint64_t> Number(std::string_view digits, int base,
                                  uint64_t max) const;

  std::string_view text_;
  std::string_view rest_;
};

absl::Status Parser::CheckBytes() const {
  for (size_t i = 0; i < text_.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text_[i]);
    if (c <= ' ' || c == 0x7f) {
      return Error(i + 1,
                   "a blank or control character, which no kernel "
                   "function has in its name");
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::CheckPlainName(std::string_view name,
                                    size_t position) const {
  if (name.empty()) return Error(position, "a name is missing");
  const size_t wild = name.find_first_of("*?[:!@");
  if (wild != std::string_view::npos) {
    return Error(position + wild, "a plain name is needed here");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Parser::Number(std::string_view digits, int base,
                                        uint64_t max) const {
  const size_t at = static_cast<size_t>(digits.data() - text_.data()) + 1;
  if (digits.empty()) return Error(at, "a number is missing");
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error == std::errc::result_out_of_range) {
    return Error(at, "the number is too large");
  }
  if (stop != end) {
    return Error(static_cast<size_t>(stop - text_.data()) + 1,
                 base == 16 ? "not a hexadecimal digit" : "not a digit");
  }
  if (value > max) return Error(at, "the number is too large");
  return value;
}

absl::StatusOr<Request> Parser::ParseAddress() {
  absl::StatusOr<uint64_t> addr = Number(rest_, 16, UINT64_MAX);
  if (!addr.ok()) return addr.status();
  if (*addr == 0) return Error(1, "no function is at address 0");
  return Request::Address(*addr);
}

absl::Status Parser::CheckPattern(std::string_view pattern) const {
  const std::optional<GlobFault> fault = FindGlobFault(pattern);
  if (!fault.has_value()) return absl::OkStatus();
  return Error(position() - 1 + fault->position, fault->what);
}

absl::StatusOr<Request> Parser::ParseSyscall() {
  absl::Status status = CheckPlainName(rest_, position());
  if (!status.ok()) return status;
  return Request::Syscall(std::string(rest_));
}

absl::StatusOr<Request> Parser::ParseBtfId() {
  std::string module;
  const size_t colon = rest_.rfind(':');
  if (colon != std::string_view::npos) {
    module = std::string(rest_.substr(0, colon));
    absl::Status status = CheckPlainName(module, position());
    if (!status.ok()) return status;
    rest_.remove_prefix(colon + 1);
  }
  absl::StatusOr<uint64_t> id = Number(rest_, 10, UINT32_MAX);
  if (!id.ok()) return id.status();
  if (*id == 0) return Error(position(), "BTF id 0 is void, not a function");
  if (module == "vmlinux") module.clear();
  return Request::BtfId(static_cast<uint32_t>(*id), std::move(module));
}

absl::StatusOr<Request> Parser::ParseTakes() {
  const size_t at_sign = rest_.find('@');
  const std::string_view name = rest_.substr(0, at_sign);
  absl::Status status = CheckPlainName(name, position());
  if (!status.ok()) return status;
  if (at_sign == std::string_view::npos) {
    return Request::Takes(std::string(name));
  }
  const std::string_view digits = rest_.substr(at_sign + 1);
  absl::StatusOr<uint64_t> parameter = Number(digits, 10, 255);
  if (!parameter.ok()) return parameter.status();
  if (*parameter == 0) {
    return Error(position() + at_sign + 1, "parameters are counted from 1");
  }
  return Request::Takes(std::string(name), static_cast<int>(*parameter));
}

absl::StatusOr<Request> Parser::ParsePattern() {
  // A colon inside of a class would be none, but no name has one either.
  const size_t colon = rest_.find(':');
  Owner owner = Owner::Any();
  if (colon != std::string_view::npos) {
    const std::string_view module = rest_.substr(0, colon);
    absl::Status status = CheckPattern(module);
    if (!status.ok()) return status;
    owner = module == "vmlinux" ? Owner::Core()
                                : Owner::Module(std::string(module));
    rest_.remove_prefix(colon + 1);
    const size_t again = rest_.find(':');
    if (again != std::string_view::npos) {
      return Error(position() + again, "a second ':'; the form is module:name");
    }
  }
  if (rest_.empty()) return Error(position(), "a name is missing");
  if (!HasWildcard(rest_)) {
    return Request::Exact(std::string(rest_), std::move(owner));
  }
  absl::Status status = CheckPattern(rest_);
  if (!status.ok()) return status;
  return Request::Glob(std::string(rest_), std::move(owner));
}

absl::StatusOr<Request> Parser::ParseForm() {
  if (rest_.empty()) return Error(position(), "empty");
  if (rest_[0] == '!') return Error(position(), "a second '!'");
  if (Skip("0x") || Skip("0X")) return ParseAddress();
  if (Skip("syscall:")) return ParseSyscall();
  if (Skip("btf:")) return ParseBtfId();
  if (Skip("takes:")) return ParseTakes();
  return ParsePattern();
}

absl::StatusOr<Request> Parser::Parse() {
  absl::Status status = CheckBytes();
  if (!status.ok()) return status;
  const bool deny = Skip("!");
  const size_t start = position();
  absl::StatusOr<Request> request = ParseForm();
  if (!request.ok() || !deny) return request;
  if (request->form() == Request::Form::kBtfId ||
      request->form() == Request::Form::kTakes) {
    return Error(start, "btf: and takes: cannot be denied, only selected");
  }
  request->set_deny();
  return request;
}

}  // namespace

absl::StatusOr<Request> Request::Parse(std::string_view text) {
  return Parser(text).Parse();
}

}  // namespace ksweep
