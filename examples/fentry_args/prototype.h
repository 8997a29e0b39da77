// Parameters of kernel functions, by BTF, and the text of their values.

#ifndef KSWEEP_EXAMPLES_FENTRY_ARGS_PROTOTYPE_H_
#define KSWEEP_EXAMPLES_FENTRY_ARGS_PROTOTYPE_H_

#include <bpf/btf.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fentry_args/call.h"

namespace examples {

enum class Format : uint8_t {
  kPointer,
  kString,  // pointer to char
  kUnsigned,
  kSigned,
  kBool,
  kEnum,
  kBytes,  // a struct or union by value
};

struct Parameter {
  std::string name;  // "arg2" if it has none
  Format format = Format::kPointer;
  uint32_t bytes = 8;
  uint32_t first_arg = 0;  // an argument has 8 bytes; a struct may be two
  std::map<uint64_t, std::string> enumerators;
};

struct Prototype {
  std::vector<Parameter> parameters;

  fentry_args_spec Spec() const;
};

struct Argument {
  std::string name;
  std::string value;  // bytes as they are, of a string
  bool is_string = false;
};

// The arguments of a call.
std::vector<Argument> ArgumentsOf(const Prototype& prototype,
                                  const fentry_args_call& call);

// "file=0xffff888004b5a900, buf=0x7ffe3c2f7d50, count=4096".
std::string ArgumentsText(const std::vector<Argument>& arguments);

// Of the FUNC `id` in `object`.
absl::StatusOr<Prototype> PrototypeOf(const btf& object, uint32_t id);

// The BTF of the running kernel, and of its modules as they are asked for.
class KernelBtf {
 public:
  static absl::StatusOr<KernelBtf> Load();

  // Empty: of the core kernel. Lives as long as this object.
  absl::StatusOr<const btf*> Of(std::string_view module);

 private:
  struct Free {
    void operator()(btf* object) const { btf__free(object); }
  };
  using Object = std::unique_ptr<btf, Free>;

  explicit KernelBtf(Object core) : core_(std::move(core)) {}

  Object core_;  // outlives the modules', which are split from it
  std::map<std::string, Object, std::less<>> modules_;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_FENTRY_ARGS_PROTOTYPE_H_
