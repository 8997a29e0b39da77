#include "lib/source/line_reader.h"

#include <cstring>
#include <memory>
#include <utility>

namespace ksweep {
namespace {

// The kernel gives at most 4 KiB a read, so the buffer is filled by several;
// pieces of half the buffer leave room for what is carried over.
constexpr size_t kInitialBytes = 64 * 1024;

class Reader {
 public:
  explicit Reader(ListFile* file) : file_(file) {
    buffer_.reset(new char[kInitialBytes + TextPiece::kReadableBehind]);
    capacity_ = kInitialBytes;
  }

  absl::Status Fill();
  TextPiece Piece();
  void Drop(size_t bytes);
  bool at_end() const { return at_end_; }
  bool empty() const { return used_ == 0; }

 private:
  void Grow();

  ListFile* file_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t carried_ = 0;
  bool at_end_ = false;
};

void Reader::Grow() {
  std::unique_ptr<char[]> larger(
      new char[capacity_ * 2 + TextPiece::kReadableBehind]);
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

TextPiece Reader::Piece() {
  std::memset(buffer_.get() + used_, 0, TextPiece::kReadableBehind);
  TextPiece piece;
  piece.text = {buffer_.get(), used_};
  piece.text = piece.text.substr(0, piece.text.rfind('\n') + 1);
  piece.is_last = at_end_;
  return piece;
}

void Reader::Drop(size_t bytes) {
  std::memmove(buffer_.get(), buffer_.get() + bytes, used_ - bytes);
  used_ -= bytes;
  carried_ = used_;
}

}  // namespace

absl::Status ReadText(ListFile* file,
                      absl::FunctionRef<size_t(const TextPiece&)> consume,
                      const bool* stop) {
  Reader reader(file);
  while (!*stop) {
    absl::Status status = reader.Fill();
    if (!status.ok()) return status;
    if (reader.at_end() && reader.empty()) return absl::OkStatus();
    const TextPiece piece = reader.Piece();
    const size_t done = piece.text.empty() ? 0 : consume(piece);
    if (piece.is_last) return absl::OkStatus();
    reader.Drop(done);
  }
  return absl::OkStatus();
}

absl::Status ReadLines(ListFile* file,
                       absl::FunctionRef<void(std::string_view line)> visit,
                       const bool* stop) {
  return ReadText(
      file,
      [visit, stop](const TextPiece& piece) {
        std::string_view rest = piece.text;
        while (!rest.empty() && !*stop) {
          const size_t end = rest.find('\n');
          visit(rest.substr(0, end));
          rest.remove_prefix(end + 1);
        }
        return piece.text.size();
      },
      stop);
}

}  // namespace ksweep
