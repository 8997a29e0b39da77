// Names of functions by slot.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_FUNCTION_NAMES_H_
#define KSWEEP_EXAMPLES_CALLTRACE_FUNCTION_NAMES_H_

#include <string>
#include <utility>
#include <vector>

namespace examples {

// "vfs_read", or "nft_do_chain [nf_tables]"; printable.
class FunctionNames {
 public:
  explicit FunctionNames(std::vector<std::string> names)
      : names_(std::move(names)) {}

  const std::string& operator[](uint32_t slot) const {
    return slot < names_.size() ? names_[slot] : unknown_;
  }

 private:
  std::vector<std::string> names_;
  std::string unknown_ = "?";
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_FUNCTION_NAMES_H_
