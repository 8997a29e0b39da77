// Writes the records of a table and the pages over them.

#ifndef KSWEEP_LIB_INDEX_RECORD_WRITER_H_
#define KSWEEP_LIB_INDEX_RECORD_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/index/dictionary.h"
#include "lib/index/suffix_finder.h"
#include "lib/index/tokenizer.h"

namespace ksweep {

struct NewRecord {
  uint32_t compact = 0;  // not below the last one's
  std::string_view name;
  bool has_pad = false;
  bool upper = false;
};

class RecordWriter {
 public:
  // For at most `records`.
  RecordWriter(const Dictionary& dictionary, size_t records)
      : tokenizer_(dictionary), earlier_(records) {}

  // The offset of the new record. FailedPrecondition if the area is full.
  absl::StatusOr<uint32_t> Append(const NewRecord& record);

  // Ends the last page and pads the records; nothing can be appended then.
  void Finish();

  uint32_t bytes() const { return bytes_; }
  std::string TakeRecords() { return std::move(records_); }
  std::string TakePages() { return page_bases_ + page_starts_; }

 private:
  // Fills `codes_` with the shorter form.
  bool Encode(std::string_view name);
  bool EncodeRef(std::string_view name, size_t plain_cnt);
  void StartRecord(const NewRecord& record, bool is_ref);
  void AppendCodes();

  Tokenizer tokenizer_;
  SuffixFinder earlier_;
  std::string records_, page_bases_, page_starts_;
  uint32_t page_base_ = 0;
  uint32_t bytes_ = 0;
  std::vector<uint16_t> codes_, ref_codes_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_RECORD_WRITER_H_
