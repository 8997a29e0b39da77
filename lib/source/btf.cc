#include "lib/source/btf.h"

#include <linux/btf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

constexpr uint32_t kVoid = 0;
// As many typedefs and qualifiers as the kernel follows (Linux
// kernel/bpf/btf.c, MAX_RESOLVE_DEPTH).
constexpr int kMaxModifiers = 32;
// Sixteen times what the kernel takes (Linux include/uapi/linux/btf.h,
// BTF_MAX_TYPE).
constexpr uint32_t kMaxTypes = 1u << 24;

// Kinds by number, beyond those of old headers.
constexpr uint32_t kKindCnt = 20;
constexpr uint32_t kTypeTag = 18;
constexpr uint32_t kEnum64 = 19;

struct KindInfo {
  std::string_view name;
  uint8_t fixed_bytes = 0;  // behind what all types have
  uint8_t item_bytes = 0;   // for each of its members
  bool refers = false;      // its third word is a type id
};

constexpr std::array<KindInfo, kKindCnt> kKinds = {{
    {"VOID", 0, 0, false},    {"INT", 4, 0, false},
    {"PTR", 0, 0, true},      {"ARRAY", 12, 0, false},
    {"STRUCT", 0, 12, false}, {"UNION", 0, 12, false},
    {"ENUM", 0, 8, false},    {"FWD", 0, 0, false},
    {"TYPEDEF", 0, 0, true},  {"VOLATILE", 0, 0, true},
    {"CONST", 0, 0, true},    {"RESTRICT", 0, 0, true},
    {"FUNC", 0, 0, true},     {"FUNC_PROTO", 0, 8, true},
    {"VAR", 4, 0, true},      {"DATASEC", 0, 12, false},
    {"FLOAT", 0, 0, false},   {"DECL_TAG", 4, 0, true},
    {"TYPE_TAG", 0, 0, true}, {"ENUM64", 0, 12, false},
}};

constexpr bool IsModifier(uint32_t kind) {
  return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_VOLATILE ||
         kind == BTF_KIND_CONST || kind == BTF_KIND_RESTRICT ||
         kind == kTypeTag;
}

absl::Status Damaged(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("damaged BTF: %s", Av(what)));
}

absl::Status DamagedAt(uint32_t id, std::string_view what) {
  return Damaged(absl::StrFormat("type %d %s", id, Av(what)));
}

}  // namespace

// The third word is a size or a type id, by kind.
struct Btf::Type {
  uint32_t name;
  uint32_t info;
  uint32_t size_or_type;

  uint32_t kind() const { return (info >> 24) & 0x1f; }
  uint32_t cnt() const { return info & 0xffff; }
  // Bits that no kernel sets so far: another layout, or damage.
  bool has_unknown_bits() const { return (info & 0x60ff0000) != 0; }
};

Btf::Btf(std::string bytes, const Btf* base)
    : bytes_(std::move(bytes)), base_(base) {}

absl::StatusOr<std::unique_ptr<Btf>> Btf::Parse(std::string bytes,
                                                const Btf* base) {
  auto btf = std::unique_ptr<Btf>(new Btf(std::move(bytes), base));
  absl::Status status = btf->ReadHeader();
  if (status.ok()) status = btf->ReadTypes();
  if (status.ok()) status = btf->CheckReferences();
  if (!status.ok()) return status;
  return btf;
}

absl::Status Btf::ReadHeader() {
  btf_header header;
  if (bytes_.size() < sizeof(header)) {
    return Damaged(
        absl::StrFormat("%d bytes are less than its header", bytes_.size()));
  }
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (header.magic == __builtin_bswap16(BTF_MAGIC)) {
    return absl::InvalidArgumentError(
        "BTF of a machine with another byte order");
  }
  if (header.magic != BTF_MAGIC) return Damaged("it does not start as BTF");
  if (header.version != BTF_VERSION) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "BTF of version %d, where %d is known", header.version, BTF_VERSION));
  }
  const auto piece = [&](uint64_t offset, uint64_t len,
                         std::string_view* view) {
    const uint64_t begin = header.hdr_len + offset;
    if (header.hdr_len < sizeof(header) || begin + len > bytes_.size()) {
      return false;
    }
    *view = std::string_view(bytes_).substr(begin, len);
    return true;
  };
  if (!piece(header.type_off, header.type_len, &types_)) {
    return Damaged("its types end behind the file");
  }
  if (!piece(header.str_off, header.str_len, &strings_)) {
    return Damaged("its names end behind the file");
  }
  // Split BTF may have no names of its own.
  if (strings_.empty() ? base_ == nullptr : strings_.back() != '\0') {
    return Damaged("its names have no end");
  }
  if (base_ == nullptr) return absl::OkStatus();
  first_id_ = base_->end_id();
  first_string_ =
      base_->first_string_ + static_cast<uint32_t>(base_->strings_.size());
  return absl::OkStatus();
}

bool Btf::IsName(uint32_t offset) const {
  if (offset < first_string_) return true;
  return offset - first_string_ < strings_.size();
}

absl::Status Btf::AddType(size_t at, size_t* bytes) {
  const uint32_t id = end_id();
  if (types_.size() - at < sizeof(Type)) return DamagedAt(id, "is cut off");
  Type type;
  std::memcpy(&type, types_.data() + at, sizeof(type));
  const uint32_t kind = type.kind();
  if (kind == BTF_KIND_UNKN || kind >= kKindCnt || type.has_unknown_bits()) {
    return DamagedAt(
        id, absl::StrFormat("is of no known kind (0x%08x)", type.info));
  }
  // A FUNC keeps its linkage where others keep how many members they have.
  *bytes = sizeof(Type) + kKinds[kind].fixed_bytes +
           size_t{type.cnt()} * kKinds[kind].item_bytes;
  if (types_.size() - at < *bytes) return DamagedAt(id, "is cut off");
  if (id >= kMaxTypes) return Damaged("it has too many types");
  if (!IsName(type.name)) {
    return DamagedAt(
        id, absl::StrFormat("has its name at %d, behind all names", type.name));
  }
  offsets_.push_back(static_cast<uint32_t>(at));
  if (kind == BTF_KIND_FUNC) {
    funcs_.push_back({id, type.size_or_type, NameAt(type.name)});
  }
  return absl::OkStatus();
}

absl::Status Btf::ReadTypes() {
  // A kernel's types have 25 bytes on average.
  offsets_.reserve(types_.size() / 24);
  for (size_t at = 0, bytes; at < types_.size(); at += bytes) {
    absl::Status status = AddType(at, &bytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Btf::CheckReference(uint32_t from, uint32_t to) const {
  if (to < end_id()) return absl::OkStatus();
  return DamagedAt(from, absl::StrFormat("refers to type %d, and they end at "
                                         "%d",
                                         to, end_id() - 1));
}

absl::Status Btf::CheckParams(uint32_t id, const Type& type) const {
  const char* const params = PlaceOf(id) + sizeof(Type);
  for (uint32_t i = 0; i < type.cnt(); ++i) {
    btf_param param;
    std::memcpy(&param, params + i * sizeof(param), sizeof(param));
    absl::Status status = CheckReference(id, param.type);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Btf::CheckReferences() const {
  for (uint32_t id = first_id_; id < end_id(); ++id) {
    const Type type = TypeAt(id);
    const uint32_t kind = type.kind();
    if (!kKinds[kind].refers) continue;
    absl::Status status = CheckReference(id, type.size_or_type);
    if (status.ok() && kind == BTF_KIND_FUNC_PROTO) {
      status = CheckParams(id, type);
    }
    if (!status.ok()) return status;
    if (kind == BTF_KIND_FUNC &&
        TypeAt(type.size_or_type).kind() != BTF_KIND_FUNC_PROTO) {
      return DamagedAt(id, "is a FUNC without a prototype");
    }
  }
  return absl::OkStatus();
}

const char* Btf::PlaceOf(uint32_t id) const {
  if (id < first_id_) return base_->PlaceOf(id);
  return types_.data() + offsets_[id - first_id_];
}

// Of type 0, void, which is in no file, all is 0.
Btf::Type Btf::TypeAt(uint32_t id) const {
  Type type = {};
  if (id != kVoid) std::memcpy(&type, PlaceOf(id), sizeof(type));
  return type;
}

std::string_view Btf::NameAt(uint32_t offset) const {
  if (offset < first_string_) return base_->NameAt(offset);
  return strings_.data() + (offset - first_string_);
}

const BtfFunc* Btf::FindFunc(uint32_t id) const {
  const auto found = std::lower_bound(
      funcs_.begin(), funcs_.end(), id,
      [](const BtfFunc& func, uint32_t value) { return func.id < value; });
  return found != funcs_.end() && found->id == id ? &*found : nullptr;
}

std::string Btf::Describe(uint32_t id) const {
  if (id >= end_id()) {
    return absl::StrFormat("type ids end at %d", end_id() - 1);
  }
  const Type type = TypeAt(id);
  const std::string_view name = NameAt(type.name);
  return absl::StrFormat("type %d is %s%s%s%s", id,
                         Av(kKinds[type.kind()].name), name.empty() ? "" : " '",
                         Av(name), name.empty() ? "" : "'");
}

uint32_t Btf::SkipModifiers(uint32_t id) const {
  for (int depth = 0; depth < kMaxModifiers; ++depth) {
    const Type type = TypeAt(id);
    if (!IsModifier(type.kind())) return id;
    id = type.size_or_type;
  }
  return id;
}

BtfValue Btf::ValueOf(uint32_t id) const {
  const Type type = TypeAt(SkipModifiers(id));
  switch (type.kind()) {
    case BTF_KIND_UNKN:
      return {BtfValue::Kind::kVoid, 0};
    case BTF_KIND_PTR:
      return {BtfValue::Kind::kPointer, 8};
    case BTF_KIND_INT:
    case BTF_KIND_ENUM:
    case kEnum64:
      return {BtfValue::Kind::kScalar, type.size_or_type};
    case BTF_KIND_STRUCT:
      return {BtfValue::Kind::kStruct, type.size_or_type};
    case BTF_KIND_UNION:
      return {BtfValue::Kind::kUnion, type.size_or_type};
    default:
      return {BtfValue::Kind::kOther, 0};
  }
}

std::string_view Btf::PointedStruct(uint32_t id) const {
  const Type pointer = TypeAt(SkipModifiers(id));
  if (pointer.kind() != BTF_KIND_PTR) return {};
  const Type pointed = TypeAt(SkipModifiers(pointer.size_or_type));
  switch (pointed.kind()) {
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_FWD:
      return NameAt(pointed.name);
    default:
      return {};
  }
}

uint32_t Btf::param_cnt(const BtfFunc& func) const {
  return TypeAt(func.proto).cnt();
}

uint32_t Btf::ParamType(const BtfFunc& func, uint32_t index) const {
  btf_param param;
  std::memcpy(&param,
              PlaceOf(func.proto) + sizeof(Type) + index * sizeof(param),
              sizeof(param));
  return param.type;
}

// The view of Linux kernel/bpf/btf.c, btf_distill_func_proto().
BtfPrototype Btf::Prototype(const BtfFunc& func) const {
  BtfPrototype proto;
  proto.ret = ValueOf(TypeAt(func.proto).size_or_type);
  const uint32_t cnt = param_cnt(func);
  for (uint32_t i = 0; i < cnt; ++i) {
    const uint32_t type = ParamType(func, i);
    if (type == kVoid && i + 1 == cnt) {
      proto.varargs = true;
      break;
    }
    const BtfValue value = ValueOf(type);
    ++proto.arg_cnt;
    proto.arg_words += std::max(1u, value.size / 8 + (value.size % 8 != 0));
    proto.largest_arg = std::max(proto.largest_arg, value.size);
    proto.struct_arg |= value.kind == BtfValue::Kind::kStruct;
    proto.union_arg |= value.kind == BtfValue::Kind::kUnion;
    proto.other_arg |= value.kind == BtfValue::Kind::kOther;
    proto.void_arg |= value.size == 0 && value.kind != BtfValue::Kind::kOther;
  }
  return proto;
}

}  // namespace ksweep
