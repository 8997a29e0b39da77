#include "lib/index/record_writer.h"

#include <algorithm>

#include "absl/status/status.h"
#include "lib/index/le.h"
#include "lib/index/record.h"

namespace ksweep {
namespace {

constexpr size_t kMaxRecordBytes = UINT32_MAX - (size_t{1} << 20);

bool NeedsLongCount(const std::vector<uint16_t>& codes) {
  return codes.size() >= kLongCount ||
         std::find(codes.begin(), codes.end(), kEscapeCode) != codes.end();
}

}  // namespace

// Codes of what is in front of an earlier name, and two for where that is.
bool RecordWriter::EncodeRef(std::string_view name, size_t plain_cnt) {
  bool found = false;
  earlier_.Find(name, [&](size_t start, uint32_t offset) {
    ref_codes_.clear();
    tokenizer_.Encode(name.substr(0, start), &ref_codes_);
    found = ref_codes_.size() + 2 < plain_cnt;
    ref_codes_.push_back(offset & kCodeMask);
    ref_codes_.push_back(static_cast<uint16_t>(offset >> kCodeBits));
    return found;
  });
  return found;
}

bool RecordWriter::Encode(std::string_view name) {
  codes_.clear();
  tokenizer_.Encode(name, &codes_);
  if (codes_.size() <= 2 || !EncodeRef(name, codes_.size())) return false;
  // Codes that are an offset may look like an escape, which only the count of
  // the whole decides on; those in front may be one.
  std::swap(codes_, ref_codes_);
  return true;
}

void RecordWriter::StartRecord(const NewRecord& record, bool is_ref) {
  const size_t at = records_.size();
  if (at / kPageBytes >= page_starts_.size()) {
    // Pages in which none starts have the base of the next record, too.
    page_base_ = record.compact;
    while (page_starts_.size() <= at / kPageBytes) {
      const bool is_last = page_starts_.size() == at / kPageBytes;
      AppendLe(page_base_, &page_bases_);
      page_starts_.push_back(
          static_cast<char>(is_last ? at % kPageBytes : kNoStart));
    }
  }
  const bool is_long = NeedsLongCount(codes_);
  const uint32_t delta = std::min(record.compact - page_base_, kFarDelta);
  const size_t cnt = is_long ? kLongCount : codes_.size();
  AppendLe(static_cast<uint16_t>(delta), &records_);
  records_.push_back(static_cast<char>((record.has_pad ? kPadBit : 0) |
                                       (is_ref ? kRefBit : 0) |
                                       (record.upper ? kUpperBit : 0) | cnt));
  if (delta == kFarDelta) AppendLe(record.compact, &records_);
  if (is_long) AppendLeb(codes_.size(), &records_);
}

void RecordWriter::AppendCodes() {
  for (size_t i = 0; i < codes_.size(); i += 2) {
    const bool is_pair = i + 1 < codes_.size();
    const uint32_t two =
        codes_[i] | (is_pair ? static_cast<uint32_t>(codes_[i + 1]) : 0)
                        << kCodeBits;
    records_.push_back(static_cast<char>(two));
    records_.push_back(static_cast<char>(two >> 8));
    if (is_pair) records_.push_back(static_cast<char>(two >> 16));
  }
}

absl::StatusOr<uint32_t> RecordWriter::Append(const NewRecord& record) {
  records_.resize(SkipNoStart(static_cast<uint32_t>(records_.size())));
  if (records_.size() > kMaxRecordBytes) {
    return absl::FailedPreconditionError(
        "too many symbols for an index: their names need more than 4 GiB");
  }
  const auto offset = static_cast<uint32_t>(records_.size());
  const bool is_ref = Encode(record.name);
  StartRecord(record, is_ref);
  AppendCodes();
  if (!is_ref && offset <= kMaxRefOffset) earlier_.Add(record.name, offset);
  return offset;
}

void RecordWriter::Finish() {
  bytes_ = static_cast<uint32_t>(records_.size());
  while (page_starts_.size() * kPageBytes < bytes_) {
    AppendLe(UINT32_MAX, &page_bases_);
    page_starts_.push_back(static_cast<char>(kNoStart));
  }
  records_.append(kRecordPadding, '\0');
}

}  // namespace ksweep
