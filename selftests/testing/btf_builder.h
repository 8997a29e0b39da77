// BTF built in code, so that tests say what is in it.

#ifndef KSWEEP_SELFTESTS_TESTING_BTF_BUILDER_H_
#define KSWEEP_SELFTESTS_TESTING_BTF_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ksweep::testing {

// Types in the order in which they are added; each call returns the new id.
//
//   BtfBuilder btf;
//   const uint32_t skb = btf.Ptr(btf.Struct("sk_buff", 232));
//   const uint32_t id = btf.Func("ip_rcv", btf.Int("int", 4), {skb});
//   kernel.WriteBtf("", btf.Build());
class BtfBuilder {
 public:
  static constexpr uint32_t kVoid = 0;

  BtfBuilder() = default;
  // Split BTF: ids and names go on where those of `base` end by now.
  static BtfBuilder SplitOf(const BtfBuilder& base);

  uint32_t Int(std::string_view name, uint32_t bytes);
  uint32_t Float(std::string_view name, uint32_t bytes);
  uint32_t Enum(std::string_view name, uint32_t bytes);
  uint32_t Enum64(std::string_view name);
  uint32_t Ptr(uint32_t to);
  uint32_t Struct(std::string_view name, uint32_t bytes);
  uint32_t Union(std::string_view name, uint32_t bytes);
  uint32_t Fwd(std::string_view name);
  uint32_t Typedef(std::string_view name, uint32_t of);
  uint32_t Const(uint32_t of);
  uint32_t TypeTag(std::string_view name, uint32_t of);
  uint32_t Array(uint32_t of, uint32_t cnt);

  // A last parameter of kVoid is the `...`.
  uint32_t Proto(uint32_t ret, const std::vector<uint32_t>& params);
  uint32_t Func(std::string_view name, uint32_t proto);
  uint32_t Func(std::string_view name, uint32_t ret,
                const std::vector<uint32_t>& params);

  // Any type, for what the others do not make. `info` without its kind.
  uint32_t Raw(uint32_t name_offset, uint32_t kind, uint32_t info,
               uint32_t size_or_type, const std::vector<uint32_t>& more = {});
  // Puts a name among the strings; returns its offset.
  uint32_t Name(std::string_view name);

  uint32_t next_id() const { return next_id_; }
  std::string Build() const;

 private:
  std::string types_;
  std::string names_ = std::string(1, '\0');
  uint32_t next_id_ = 1;
  uint32_t first_name_ = 0;
};

// The same bytes as the section `.BTF` of an ELF file.
std::string BtfInElf(const std::string& btf);

}  // namespace ksweep::testing

#endif  // KSWEEP_SELFTESTS_TESTING_BTF_BUILDER_H_
