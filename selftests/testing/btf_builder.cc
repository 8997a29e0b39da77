#include "selftests/testing/btf_builder.h"

#include <linux/btf.h>

#include <cstring>

#include "selftests/testing/bpf_elf.h"

namespace ksweep::testing {
namespace {

constexpr uint32_t kTypeTag = 18;
constexpr uint32_t kEnum64 = 19;

void Append(uint32_t word, std::string* bytes) {
  char raw[sizeof(word)];
  std::memcpy(raw, &word, sizeof(word));
  bytes->append(raw, sizeof(raw));
}

}  // namespace

BtfBuilder BtfBuilder::SplitOf(const BtfBuilder& base) {
  BtfBuilder split;
  split.next_id_ = base.next_id_;
  split.first_name_ =
      base.first_name_ + static_cast<uint32_t>(base.names_.size());
  split.names_.clear();
  return split;
}

uint32_t BtfBuilder::Name(std::string_view name) {
  if (name.empty()) return 0;
  const uint32_t offset = first_name_ + static_cast<uint32_t>(names_.size());
  names_ += name;
  names_ += '\0';
  return offset;
}

uint32_t BtfBuilder::Raw(uint32_t name_offset, uint32_t kind, uint32_t info,
                         uint32_t size_or_type,
                         const std::vector<uint32_t>& more) {
  Append(name_offset, &types_);
  Append(kind << 24 | info, &types_);
  Append(size_or_type, &types_);
  for (uint32_t word : more) Append(word, &types_);
  return next_id_++;
}

uint32_t BtfBuilder::Int(std::string_view name, uint32_t bytes) {
  return Raw(Name(name), BTF_KIND_INT, 0, bytes, {bytes * 8});
}
uint32_t BtfBuilder::Float(std::string_view name, uint32_t bytes) {
  return Raw(Name(name), BTF_KIND_FLOAT, 0, bytes);
}
uint32_t BtfBuilder::Enum(std::string_view name, uint32_t bytes) {
  return Raw(Name(name), BTF_KIND_ENUM, 1, bytes, {Name("enumerator"), 7});
}
uint32_t BtfBuilder::Enum64(std::string_view name) {
  return Raw(Name(name), kEnum64, 1, 8, {Name("enumerator"), 7, 0});
}
uint32_t BtfBuilder::Ptr(uint32_t to) { return Raw(0, BTF_KIND_PTR, 0, to); }
uint32_t BtfBuilder::Struct(std::string_view name, uint32_t bytes) {
  return Raw(Name(name), BTF_KIND_STRUCT, 1, bytes, {Name("member"), 0, 0});
}
uint32_t BtfBuilder::Union(std::string_view name, uint32_t bytes) {
  return Raw(Name(name), BTF_KIND_UNION, 1, bytes, {Name("member"), 0, 0});
}
uint32_t BtfBuilder::Fwd(std::string_view name) {
  return Raw(Name(name), BTF_KIND_FWD, 0, 0);
}
uint32_t BtfBuilder::Typedef(std::string_view name, uint32_t of) {
  return Raw(Name(name), BTF_KIND_TYPEDEF, 0, of);
}
uint32_t BtfBuilder::Const(uint32_t of) {
  return Raw(0, BTF_KIND_CONST, 0, of);
}
uint32_t BtfBuilder::TypeTag(std::string_view name, uint32_t of) {
  return Raw(Name(name), kTypeTag, 0, of);
}
uint32_t BtfBuilder::Array(uint32_t of, uint32_t cnt) {
  return Raw(0, BTF_KIND_ARRAY, 0, 0, {of, of, cnt});
}

uint32_t BtfBuilder::Proto(uint32_t ret, const std::vector<uint32_t>& params) {
  std::vector<uint32_t> words;
  for (size_t i = 0; i < params.size(); ++i) {
    const bool dots = params[i] == kVoid && i + 1 == params.size();
    words.push_back(dots ? 0 : Name("p" + std::to_string(i)));
    words.push_back(params[i]);
  }
  return Raw(0, BTF_KIND_FUNC_PROTO, static_cast<uint32_t>(params.size()), ret,
             words);
}

uint32_t BtfBuilder::Func(std::string_view name, uint32_t proto) {
  return Raw(Name(name), BTF_KIND_FUNC, BTF_FUNC_STATIC, proto);
}

uint32_t BtfBuilder::Func(std::string_view name, uint32_t ret,
                          const std::vector<uint32_t>& params) {
  return Func(name, Proto(ret, params));
}

std::string BtfBuilder::Build() const {
  btf_header header = {};
  header.magic = BTF_MAGIC;
  header.version = BTF_VERSION;
  header.hdr_len = sizeof(header);
  header.type_len = static_cast<uint32_t>(types_.size());
  header.str_off = header.type_len;
  header.str_len = static_cast<uint32_t>(names_.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + types_ + names_;
}

std::string BtfInElf(const std::string& btf) {
  return BuildElf({{".text", "text"}, {".BTF", btf}});
}

}  // namespace ksweep::testing
