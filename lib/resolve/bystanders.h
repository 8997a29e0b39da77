// Functions kept for a while, because they may turn out to be aliases.

#ifndef KSWEEP_LIB_RESOLVE_BYSTANDERS_H_
#define KSWEEP_LIB_RESOLVE_BYSTANDERS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "ksweep/request.h"

namespace ksweep {

// Symbols in the order in which they were added, one behind the other in
// blocks: nothing is copied again when more come.
class Bystanders {
 public:
  void Add(uint64_t addr, char type, std::string_view name) {
    const Header header = {addr, static_cast<uint32_t>(name.size()), type};
    const size_t bytes = sizeof(header) + name.size();
    if (used_ + bytes > room_) AddBlock(bytes);
    char* const place = blocks_.back().bytes.get() + used_;
    std::memcpy(place, &header, sizeof(header));
    std::memcpy(place + sizeof(header), name.data(), name.size());
    used_ += bytes;
    blocks_.back().used = used_;
  }

  bool empty() const { return used_ == 0; }

  // Calls visit(symbol) for each; its module is empty.
  template <typename Visit>
  void ForEach(Visit visit) const;

  // Removes all. One block is kept for the next ones.
  void Clear() {
    if (blocks_.size() > 1) blocks_.resize(1);
    used_ = 0;
    room_ = blocks_.empty() ? 0 : blocks_[0].size;
    if (!blocks_.empty()) blocks_[0].used = 0;
  }

 private:
  struct Header {
    uint64_t addr;
    uint32_t len;
    char type;
  };
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    size_t used = 0;
  };
  static constexpr size_t kBlockBytes = 32 * 1024;

  void AddBlock(size_t at_least) {
    room_ = at_least > kBlockBytes ? at_least : kBlockBytes;
    blocks_.push_back({std::unique_ptr<char[]>(new char[room_]), room_, 0});
    used_ = 0;
  }

  std::vector<Block> blocks_;
  size_t used_ = 0;  // of the last block
  size_t room_ = 0;
};

template <typename Visit>
void Bystanders::ForEach(Visit visit) const {
  for (const Block& block : blocks_) {
    for (size_t at = 0; at < block.used;) {
      Header header;
      std::memcpy(&header, block.bytes.get() + at, sizeof(header));
      at += sizeof(header);
      Symbol symbol;
      symbol.addr = header.addr;
      symbol.type = header.type;
      symbol.name = {block.bytes.get() + at, header.len};
      at += header.len;
      visit(symbol);
    }
  }
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_BYSTANDERS_H_
