// BPF Type Format: the functions of the kernel or of one module, by number, and
// what they take and return.
//
// Only what a tracer asks is read: FUNC rows, prototypes, and as much of other
// types as tells sizes and pointers apart.

#ifndef KSWEEP_LIB_SOURCE_BTF_H_
#define KSWEEP_LIB_SOURCE_BTF_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ksweep {

struct BtfFunc {
  uint32_t id = 0;
  uint32_t proto = 0;  // the type id of its prototype
  std::string_view name;
};

// What matters of a parameter or a returned value, behind typedefs and
// qualifiers.
struct BtfValue {
  enum class Kind : uint8_t {
    kVoid,
    kScalar,  // an integer or an enumeration
    kPointer,
    kStruct,
    kUnion,
    kOther,  // none of these: a float, an incomplete type, endless typedefs
  };
  Kind kind = Kind::kVoid;
  uint32_t size = 0;  // bytes
};

// What a BPF trampoline's limits are about.
struct BtfPrototype {
  uint32_t arg_cnt = 0;      // without the `...`
  uint32_t arg_words = 0;    // of 8 bytes; one for each argument at least
  uint32_t largest_arg = 0;  // bytes
  bool varargs = false;
  bool void_arg = false;    // an argument of no size
  bool struct_arg = false;  // one passed by value
  bool union_arg = false;
  bool other_arg = false;
  BtfValue ret;
};

// The types of one BTF object. Everything in it is checked when it is made, so
// that no later call can go astray; nothing points out of it but `base`.
// Immutable, so thread-safe.
class Btf {
 public:
  // Reads raw BTF. A module's is split: its types and strings go on where those
  // of `base`, the kernel's, end; `base` outlives it. InvalidArgument with the
  // place and what is wrong there.
  static absl::StatusOr<std::unique_ptr<Btf>> Parse(std::string bytes,
                                                    const Btf* base = nullptr);

  // Ids from first_id() on, below end_id(), are its own.
  uint32_t first_id() const { return first_id_; }
  uint32_t end_id() const {
    return first_id_ + static_cast<uint32_t>(offsets_.size());
  }

  // Its own functions, ascending by id. The names live as long as this.
  absl::Span<const BtfFunc> funcs() const { return funcs_; }
  // Null if that id is not one of its own functions.
  const BtfFunc* FindFunc(uint32_t id) const;
  // "a STRUCT 'name'" and the like, for messages about any id.
  std::string Describe(uint32_t id) const;

  BtfPrototype Prototype(const BtfFunc& func) const;
  // The type ids of its parameters; a last 0 is the `...`.
  uint32_t param_cnt(const BtfFunc& func) const;
  uint32_t ParamType(const BtfFunc& func, uint32_t index) const;
  BtfValue ValueOf(uint32_t id) const;
  // The name of the struct or union that values of type `id` point to, behind
  // typedefs and qualifiers of both; empty if they do not.
  std::string_view PointedStruct(uint32_t id) const;

 private:
  struct Type;  // the part that all types have, in the file's layout

  Btf(std::string bytes, const Btf* base);

  absl::Status ReadHeader();
  absl::Status ReadTypes();
  absl::Status AddType(size_t at, size_t* bytes);
  absl::Status CheckReferences() const;
  absl::Status CheckParams(uint32_t id, const Type& type) const;
  absl::Status CheckReference(uint32_t from, uint32_t to) const;
  bool IsName(uint32_t offset) const;

  Type TypeAt(uint32_t id) const;
  const char* PlaceOf(uint32_t id) const;
  std::string_view NameAt(uint32_t offset) const;
  uint32_t SkipModifiers(uint32_t id) const;

  const std::string bytes_;
  const Btf* const base_;
  std::string_view types_;
  std::string_view strings_;
  uint32_t first_id_ = 1;
  uint32_t first_string_ = 0;
  std::vector<uint32_t> offsets_;  // in types_, by id
  std::vector<BtfFunc> funcs_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_BTF_H_
