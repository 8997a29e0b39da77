#include "fentry_args/prototype.h"

#include <errno.h>
#include <string.h>

#include "absl/strings/str_format.h"
#include "common/json.h"

namespace examples {
namespace {

// Without typedefs, const and the like.
const btf_type* Plain(const btf& object, uint32_t id) {
  const btf_type* type = btf__type_by_id(&object, id);
  while (type != nullptr &&
         (btf_is_mod(type) || btf_is_typedef(type) || btf_is_type_tag(type))) {
    type = btf__type_by_id(&object, type->type);
  }
  return type;
}

std::string_view NameAt(const btf& object, uint32_t offset) {
  const char* name = btf__name_by_offset(&object, offset);
  return name == nullptr ? "" : name;
}

// char, and neither signed nor unsigned char, which are bytes.
bool IsChar(const btf& object, const btf_type* type) {
  return type != nullptr && btf_is_int(type) &&
         NameAt(object, type->name_off) == "char";
}

void ReadEnumerators(const btf& object, const btf_type* type,
                     Parameter* parameter) {
  for (int i = 0; i < btf_vlen(type); ++i) {
    if (btf_is_enum64(type)) {
      const struct btf_enum64& row = btf_enum64(type)[i];
      parameter->enumerators.emplace(btf_enum64_value(&row),
                                     NameAt(object, row.name_off));
    } else {
      const struct btf_enum& row = btf_enum(type)[i];
      parameter->enumerators.emplace(static_cast<uint32_t>(row.val),
                                     NameAt(object, row.name_off));
    }
  }
}

void ReadType(const btf& object, uint32_t id, Parameter* parameter) {
  const btf_type* type = Plain(object, id);
  if (type == nullptr) return;
  if (btf_is_ptr(type)) {
    const bool is_string = IsChar(object, Plain(object, type->type));
    parameter->format = is_string ? Format::kString : Format::kPointer;
    return;
  }
  const int64_t bytes = btf__resolve_size(&object, id);
  if (bytes > 0) parameter->bytes = static_cast<uint32_t>(bytes);
  if (btf_is_int(type)) {
    const int encoding = btf_int_encoding(type);
    parameter->format = (encoding & BTF_INT_BOOL) != 0     ? Format::kBool
                        : (encoding & BTF_INT_SIGNED) != 0 ? Format::kSigned
                                                           : Format::kUnsigned;
  } else if (btf_is_any_enum(type)) {
    parameter->format = Format::kEnum;
    ReadEnumerators(object, type, parameter);
  } else {
    parameter->format = Format::kBytes;
  }
}

// What the caller left in the rest of the register says nothing.
uint64_t LowBytes(uint64_t value, uint32_t bytes) {
  return bytes >= 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1);
}

int64_t SignedLowBytes(uint64_t value, uint32_t bytes) {
  if (bytes >= 8) return static_cast<int64_t>(value);
  const uint32_t unused = 64 - 8 * bytes;
  return static_cast<int64_t>(value << unused) >> unused;
}

std::string PointerText(uint64_t value) {
  return value == 0 ? "NULL" : absl::StrFormat("%#x", value);
}

std::string EnumText(const Parameter& parameter, uint64_t value) {
  const auto found = parameter.enumerators.find(value);
  if (found != parameter.enumerators.end()) return found->second;
  return absl::StrFormat("%d", SignedLowBytes(value, parameter.bytes));
}

std::string BytesText(const Parameter& parameter,
                      const fentry_args_call& call) {
  std::string text = "{";
  for (uint32_t done = 0; done < parameter.bytes; done += 8) {
    const uint32_t arg = parameter.first_arg + done / 8;
    if (arg >= FENTRY_ARGS_MAX) break;
    absl::StrAppendFormat(&text, "%s%#x", done == 0 ? "" : ", ",
                          LowBytes(call.args[arg], parameter.bytes - done));
  }
  return text + "}";
}

std::string ValueText(const Parameter& parameter,
                      const fentry_args_call& call) {
  const uint64_t value =
      LowBytes(call.args[parameter.first_arg], parameter.bytes);
  switch (parameter.format) {
    case Format::kUnsigned:
      return absl::StrFormat("%d", value);
    case Format::kSigned:
      return absl::StrFormat("%d", SignedLowBytes(value, parameter.bytes));
    case Format::kBool:
      return value != 0 ? "true" : "false";
    case Format::kEnum:
      return EnumText(parameter, value);
    case Format::kBytes:
      return BytesText(parameter, call);
    case Format::kPointer:
    case Format::kString:
      break;
  }
  return PointerText(value);
}

// Of a string that was read; user memory and what is paged out was not.
bool ReadString(const fentry_args_call& call, uint32_t index,
                std::string* text) {
  if (index >= FENTRY_ARGS_STRINGS || call.string_bytes[index] <= 0) {
    return false;
  }
  text->assign(call.strings[index],
               strnlen(call.strings[index], FENTRY_ARGS_STRING_BYTES));
  if (call.string_bytes[index] == FENTRY_ARGS_STRING_BYTES) *text += "…";
  return true;
}

absl::Status BtfError(std::string_view what) {
  return absl::NotFoundError(
      absl::StrFormat("cannot read the BTF of %s, which has the parameters' "
                      "names and types: %s",
                      what, strerror(errno)));
}

}  // namespace

fentry_args_spec Prototype::Spec() const {
  fentry_args_spec spec = {};
  for (const Parameter& parameter : parameters) {
    spec.arg_cnt = parameter.first_arg + (parameter.bytes + 7) / 8;
    if (parameter.format != Format::kString) continue;
    if (spec.string_cnt == FENTRY_ARGS_STRINGS) continue;
    spec.string_args[spec.string_cnt++] = parameter.first_arg;
  }
  return spec;
}

std::vector<Argument> ArgumentsOf(const Prototype& prototype,
                                  const fentry_args_call& call) {
  std::vector<Argument> arguments;
  uint32_t string_cnt = 0;
  for (const Parameter& parameter : prototype.parameters) {
    if (parameter.first_arg >= FENTRY_ARGS_MAX) break;
    Argument argument;
    argument.name = parameter.name;
    argument.is_string = parameter.format == Format::kString &&
                         ReadString(call, string_cnt++, &argument.value);
    if (!argument.is_string) argument.value = ValueText(parameter, call);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::string ArgumentsText(const std::vector<Argument>& arguments) {
  std::string text;
  for (const Argument& argument : arguments) {
    if (!text.empty()) text += ", ";
    text += argument.name + "=";
    if (argument.is_string) {
      AppendJsonString(argument.value, &text);
    } else {
      text += argument.value;
    }
  }
  return text;
}

absl::StatusOr<Prototype> PrototypeOf(const btf& object, uint32_t id) {
  const btf_type* func = btf__type_by_id(&object, id);
  const btf_type* proto = func == nullptr || !btf_is_func(func)
                              ? nullptr
                              : btf__type_by_id(&object, func->type);
  if (proto == nullptr || !btf_is_func_proto(proto)) {
    return absl::NotFoundError(
        absl::StrFormat("BTF type %d is no function", id));
  }
  Prototype prototype;
  uint32_t arg = 0;
  for (int i = 0; i < btf_vlen(proto); ++i) {
    const btf_param& row = btf_params(proto)[i];
    Parameter parameter;
    parameter.name = NameAt(object, row.name_off);
    if (parameter.name.empty()) parameter.name = absl::StrFormat("arg%d", i);
    parameter.first_arg = arg;
    ReadType(object, row.type, &parameter);
    arg += (parameter.bytes + 7) / 8;
    prototype.parameters.push_back(std::move(parameter));
  }
  return prototype;
}

absl::StatusOr<KernelBtf> KernelBtf::Load() {
  Object core(btf__load_vmlinux_btf());
  if (core == nullptr) return BtfError("the kernel");
  return KernelBtf(std::move(core));
}

absl::StatusOr<const btf*> KernelBtf::Of(std::string_view module) {
  if (module.empty()) return core_.get();
  const auto found = modules_.find(module);
  if (found != modules_.end()) return found->second.get();
  const std::string name(module);
  Object object(btf__load_module_btf(name.c_str(), core_.get()));
  if (object == nullptr) return BtfError(name);
  return modules_.emplace(name, std::move(object)).first->second.get();
}

}  // namespace examples
