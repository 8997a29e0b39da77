// What few lookups need: types, and the further records of a name.

#ifndef KSWEEP_LIB_INDEX_SIDE_TABLES_H_
#define KSWEEP_LIB_INDEX_SIDE_TABLES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ksweep {

// Symbols that lie together are mostly of one type, but for its case, which is
// in the record.
class TypeRuns {
 public:
  // Records from `offset` on have `type`, a lower-case letter or any other
  // byte. Offsets ascend.
  static void Append(uint32_t offset, char type, std::string* packed);

  // DataLoss for what Append() did not make.
  static absl::StatusOr<TypeRuns> Make(std::string_view packed);

  size_t size() const { return starts_.size(); }

  // The run of the last look-up, which the next one mostly is in. Of no meaning
  // to another table.
  struct Cursor {
    uint32_t from = 0;
    uint32_t to = 0;  // past the last offset
    // As it is, and as a capital.
    char types[2] = {'?', '?'};
  };

  char TypeAt(uint32_t offset, bool upper, Cursor* cursor) const {
    if (offset - cursor->from >= cursor->to - cursor->from) {
      *cursor = Find(offset);
    }
    return cursor->types[upper];
  }
  char TypeAt(uint32_t offset, bool upper) const {
    return Find(offset).types[upper];
  }

 private:
  static constexpr uint32_t kDirectorySize = 1024;

  void NoteStarts();
  Cursor Find(uint32_t offset) const;

  std::vector<uint32_t> starts_;
  std::vector<char> types_;
  // The number of starts below each multiple of 2^directory_shift_, and of all.
  std::vector<uint32_t> directory_;
  unsigned directory_shift_ = 0;
};

// `type` as a lower-case letter and whether it was a capital.
inline bool SplitType(char* type) {
  if (*type < 'A' || *type > 'Z') return false;
  *type = static_cast<char>(*type + ('a' - 'A'));
  return true;
}

// The records of names that have several, but for the one that the locator
// knows.
class Duplicates {
 public:
  // The others by the offset of the located one.
  using Lists = std::map<uint32_t, std::vector<uint32_t>>;

  static std::string Pack(const Lists& lists);
  // DataLoss if the sizes do not fit.
  static absl::StatusOr<Duplicates> Make(std::string_view packed);

  // Appends the others of the name located at `offset`, ascending; they are
  // below `end`. False if the table is damaged.
  bool Find(uint32_t offset, uint32_t end, std::vector<uint32_t>* others) const;

 private:
  std::string_view samples_;  // of every 16th list: u32 offset, u32 place
  std::string_view lists_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_SIDE_TABLES_H_
