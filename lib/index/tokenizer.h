// From names to codes: the fewest pieces that make up a name.

#ifndef KSWEEP_LIB_INDEX_TOKENIZER_H_
#define KSWEEP_LIB_INDEX_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "lib/index/dictionary.h"

namespace ksweep {

// Not thread-safe: it keeps its scratch memory.
class Tokenizer {
 public:
  explicit Tokenizer(const Dictionary& dictionary);

  // For training: code i stands for `pieces[i]`, for nothing if that is empty.
  // At most 65,535, of 1 to 15 bytes each.
  explicit Tokenizer(absl::Span<const std::string_view> pieces);

  // Appends the codes of `name`. A byte that is no piece becomes two codes,
  // kEscapeCode and itself. Of several ways with the fewest codes it takes the
  // one with the longest first piece, and so on.
  void Encode(std::string_view name, std::vector<uint16_t>* codes);

  // How many codes Encode() makes of `name` if it may not use it as one piece.
  uint32_t CostWithoutItself(std::string_view name);

 private:
  // A trie laid out as a double array: the child of node n for a byte of class
  // c is at place base[n] + c, if its parent is n.
  struct Node {
    uint32_t base = 0;
    uint32_t parent = kNoParent;
    uint16_t code = kNoCode;
  };
  struct Step {
    uint32_t cost = 0;
    uint16_t code = kNoCode;
    uint16_t size = 0;
  };
  static constexpr uint32_t kNoParent = UINT32_MAX;
  static constexpr uint16_t kNoCode = UINT16_MAX;

  struct Entry {
    std::string_view piece;
    uint16_t code;
  };

  void Build(absl::Span<const std::string_view> pieces);
  void Place(uint32_t node, absl::Span<const Entry> entries, size_t depth);
  uint32_t FindBase(absl::Span<const uint8_t> classes);
  void Parse(std::string_view name, size_t max_piece);
  Step BestStep(std::string_view name, size_t at, size_t max_piece) const;

  std::array<uint8_t, 256> classes_ = {};  // 0: in no piece
  uint32_t class_cnt_ = 1;
  std::vector<Node> nodes_;
  uint32_t first_free_ = 1;
  std::vector<Step> steps_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_TOKENIZER_H_
