#include "lib/source/line_reader.h"

#include <bit>
#include <cstring>
#include <memory>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ksweep {
namespace {

// The kernel gives at most 4 KiB a read, so the buffer is filled by several;
// batches of half the buffer leave room for what is carried over.
constexpr size_t kInitialBytes = 64 * 1024;
constexpr size_t kPadBytes = 64;

// Which of the 64 bytes at `p` are a newline, a dot, a tab.
struct Marks {
  uint64_t newlines;
  uint64_t dots;
  uint64_t tabs;
};

#if defined(__SSE2__)

Marks MarksOf(const char* p) {
  Marks marks = {0, 0, 0};
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
    const auto mask = [bytes](char c) {
      return static_cast<uint64_t>(static_cast<uint32_t>(
          _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)))));
    };
    marks.newlines |= mask('\n') << (16 * i);
    marks.dots |= mask('.') << (16 * i);
    marks.tabs |= mask('\t') << (16 * i);
  }
  return marks;
}

#else

Marks MarksOf(const char* p) {
  Marks marks = {0, 0, 0};
  for (int i = 0; i < 64; ++i) {
    marks.newlines |= uint64_t{p[i] == '\n'} << i;
    marks.dots |= uint64_t{p[i] == '.'} << i;
    marks.tabs |= uint64_t{p[i] == '\t'} << i;
  }
  return marks;
}

#endif

class Reader {
 public:
  explicit Reader(ListFile* file) : file_(file) {
    buffer_.reset(new char[kInitialBytes + kPadBytes]);
    capacity_ = kInitialBytes;
  }

  absl::Status Fill();
  LineBatch Split();
  void Drop(const LineBatch& batch, uint32_t lines);
  bool at_end() const { return at_end_; }
  bool empty() const { return used_ == 0; }

 private:
  void Grow();
  void AddMarks(size_t at, const Marks& marks);

  ListFile* file_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t carried_ = 0;
  uint64_t lines_done_ = 0;
  bool at_end_ = false;
  bool has_tab_ = false;
  std::vector<uint32_t> starts_;
  std::vector<uint32_t> dotted_;
};

void Reader::Grow() {
  std::unique_ptr<char[]> larger(new char[capacity_ * 2 + kPadBytes]);
  std::memcpy(larger.get(), buffer_.get(), used_);
  buffer_ = std::move(larger);
  capacity_ *= 2;
}

// Reads until half of the room behind what was carried over is used, or the
// end, where a missing last newline is added.
absl::Status Reader::Fill() {
  if (capacity_ - carried_ < capacity_ / 2) Grow();
  const size_t enough = carried_ + (capacity_ - carried_) / 2;
  while (!at_end_ && used_ < enough) {
    // One byte stays free for the newline.
    absl::StatusOr<size_t> got =
        file_->Read(buffer_.get() + used_, capacity_ - used_ - 1);
    if (!got.ok()) return got.status();
    used_ += *got;
    at_end_ = *got == 0;
  }
  if (at_end_ && used_ > 0 && buffer_[used_ - 1] != '\n') {
    buffer_[used_++] = '\n';
  }
  return absl::OkStatus();
}

void Reader::AddMarks(size_t at, const Marks& marks) {
  const uint32_t line = static_cast<uint32_t>(starts_.size()) - 1;
  for (uint64_t dots = marks.dots; dots != 0; dots &= dots - 1) {
    const uint64_t before = (dots & -dots) - 1;
    const uint32_t dotted =
        line + static_cast<uint32_t>(std::popcount(marks.newlines & before));
    if (dotted_.empty() || dotted_.back() != dotted) dotted_.push_back(dotted);
  }
  for (uint64_t ends = marks.newlines; ends != 0; ends &= ends - 1) {
    starts_.push_back(static_cast<uint32_t>(at) + std::countr_zero(ends) + 1);
  }
  has_tab_ |= marks.tabs != 0;
}

LineBatch Reader::Split() {
  starts_.assign(1, 0);
  dotted_.clear();
  has_tab_ = false;
  std::memset(buffer_.get() + used_, 0, kPadBytes);
  for (size_t at = 0; at < used_; at += 64) {
    AddMarks(at, MarksOf(buffer_.get() + at));
  }
  // A dot of the incomplete last line names a line that is not there yet.
  const uint32_t cnt = static_cast<uint32_t>(starts_.size()) - 1;
  while (!dotted_.empty() && dotted_.back() >= cnt) dotted_.pop_back();

  LineBatch batch;
  batch.base = buffer_.get();
  batch.starts = starts_;
  batch.dotted = dotted_;
  batch.first_line = lines_done_ + 1;
  batch.has_tab = has_tab_;
  batch.is_last = at_end_;
  return batch;
}

void Reader::Drop(const LineBatch& batch, uint32_t lines) {
  const size_t done = batch.starts[lines];
  std::memmove(buffer_.get(), buffer_.get() + done, used_ - done);
  used_ -= done;
  carried_ = used_;
  lines_done_ += lines;
}

}  // namespace

absl::Status ReadLines(ListFile* file,
                       absl::FunctionRef<uint32_t(const LineBatch&)> consume,
                       const bool* stop) {
  Reader reader(file);
  while (!*stop) {
    absl::Status status = reader.Fill();
    if (!status.ok()) return status;
    if (reader.at_end() && reader.empty()) return absl::OkStatus();
    const LineBatch batch = reader.Split();
    uint32_t done = batch.cnt() == 0 ? 0 : consume(batch);
    if (batch.is_last) return absl::OkStatus();
    reader.Drop(batch, done);
  }
  return absl::OkStatus();
}

}  // namespace ksweep
