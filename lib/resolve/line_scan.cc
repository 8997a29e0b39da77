#include "lib/resolve/line_scan.h"

#include <bit>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/hash.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ksweep {
namespace {

constexpr ptrdiff_t kShortName = 8;

// How many bytes are looked at together: most names end within them.
constexpr size_t kWindow = 48;

// Which bytes of the window at `p` are a newline, a tab or a dot. So may be
// others of 0x08 to 0x0f and 0x28 to 0x2f, which are rare: all in one
// comparison.
#if defined(__SSE2__)

inline __attribute__((always_inline)) uint64_t FindMarks(const char* p) {
  const __m128i kept_bits = _mm_set1_epi8(static_cast<char>(0xd8));
  const __m128i wanted = _mm_set1_epi8(0x08);
  const auto marks = [&](int i) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(
        _mm_cmpeq_epi8(_mm_and_si128(bytes, kept_bits), wanted))));
  };
  return marks(0) | marks(1) << 16 | marks(2) << 32;
}

#else

inline __attribute__((always_inline)) uint64_t FindMarks(const char* p) {
  uint64_t marks = 0;
  for (size_t i = 0; i < kWindow; ++i) {
    marks |= uint64_t{(p[i] & 0xd8) == 0x08} << i;
  }
  return marks;
}

#endif

// True if the blanks are where a 64-bit kernel puts them.
inline bool HasBlanks(const char* p) {
  constexpr char kMask[] = {'\xff', 0, '\xff', 0};
  constexpr char kBlanks[] = {' ', 0, ' ', 0};
  return (LoadU32(p + kKsymAddrLen) & LoadU32(kMask)) == LoadU32(kBlanks);
}

}  // namespace

void LineScan::Start(std::string_view text) {
  text_ = text;
  cnt_ = 0;
  probe_cnt_ = 0;
  ordered_ = true;
  has_small_ = false;
  MakeRoom(text.size());
  odd_.Reset(static_cast<uint32_t>(starts_.size()));
  modules_.Reset(static_cast<uint32_t>(starts_.size()));
  odd_lines_.clear();
  dots_.clear();
}

// Room for what can be in `bytes` more bytes, if no line in them is odd.
void LineScan::MakeRoom(size_t bytes) {
  // A name of one byte, and the newline.
  constexpr size_t kShortestLine = kKsymNameColumn + 2;
  const size_t lines = cnt_ + bytes / kShortestLine + 2;
  if (lines <= starts_.size()) return;
  starts_.resize(lines + lines / 2);
  tabs_.resize(starts_.size());
  odd_.Grow(static_cast<uint32_t>(starts_.size()));
  modules_.Grow(static_cast<uint32_t>(starts_.size()));
  probes_.resize(starts_.size());
}

// What is in the loop happens once for each symbol of the kernel, so lines with
// a long name, a dot, a tab, or with anything else in them, are left to another
// function.
void LineScan::Scan(std::string_view text) {
  Start(text);
  // Members would be read and written again for each line.
  const NameSet::Filter filter = filter_;
  const char* const base = text.data();
  const char* const end = base + text.size();
  uint32_t* starts = starts_.data();
  NameSet::Probe* probe = probes_.data();
  uint64_t last_high = last_high_;
  uint64_t last_low = last_low_;
  uint32_t i = 0;
  for (const char* p = base; p != end; ++i) {
    starts[i] = static_cast<uint32_t>(p - base);
    const char* const window = p + kKsymAddrLen;
    // If there is no mark, the byte behind the window is as good as any.
    const char* const mark =
        window + std::countr_zero(FindMarks(window) | uint64_t{1} << kWindow);
    const char* const name = p + kKsymNameColumn;
    const uint64_t high = LoadU64(p);
    const uint64_t low = ToBigEndian(LoadU64(p + 8));
    if (!HasBlanks(p) || !IsLowerHex16(p) || *mark != '\n' ||
        mark - name < kShortName || high != last_high || low < last_low)
        [[unlikely]] {
      cnt_ = i;
      probe_cnt_ = static_cast<size_t>(probe - probes_.data());
      last_high_ = last_high;
      last_low_ = last_low;
      p = ScanUnusual(p);
      starts = starts_.data();
      probe = probes_.data() + probe_cnt_;
      last_high = last_high_;
      last_low = last_low_;
      continue;
    }
    last_low = low;
    const size_t len = static_cast<size_t>(mark - name);
    // Written always, kept if the filter says so: no branch to mispredict.
    *probe = {name, static_cast<uint32_t>(len), i};
    probe += filter.MayContain(HashLongEnds(name, len));
    p = mark + 1;
  }
  starts[i] = static_cast<uint32_t>(text.size());
  cnt_ = i;
  probe_cnt_ = static_cast<size_t>(probe - probes_.data());
  last_high_ = last_high;
  last_low_ = last_low;
}

// Returns where the next line starts.
const char* LineScan::ScanUnusual(const char* p) {
  const char* const name = p + kKsymNameColumn;
  if (!HasBlanks(p) || !IsHex16(p)) return ScanOdd(p);
  const NameEnd end = FindNameEnd(p + kKsymAddrLen);
  const char* const name_end = end.tab != nullptr ? end.tab : end.newline;
  if (name_end <= name) return ScanOdd(p);
  if (end.tab != nullptr) {
    modules_.Add(cnt_);
    tabs_[cnt_] = static_cast<uint32_t>(end.tab - text_.data());
  } else {
    NoteOrder(p);
  }
  const size_t len = static_cast<size_t>(name_end - name);
  probes_[probe_cnt_] = {name, static_cast<uint32_t>(len), cnt_};
  probe_cnt_ += filter_.MayContain(HashEnds(name, len));
  return end.newline + 1;
}

const char* LineScan::ScanOdd(const char* p) {
  const char* const text_end = text_.data() + text_.size();
  const char* const newline = static_cast<const char*>(
      std::memchr(p, '\n', static_cast<size_t>(text_end - p)));
  odd_.Add(cnt_);
  odd_lines_.push_back(cnt_);
  if (std::memchr(p, '\t', static_cast<size_t>(newline - p)) != nullptr) {
    modules_.Add(cnt_);
  }
  // It can be shorter than there is room for.
  ++cnt_;
  MakeRoom(static_cast<size_t>(text_end - newline));
  return newline + 1;
}

// Goes through the marks from `window` on. Dots in names are noted.
LineScan::NameEnd LineScan::FindNameEnd(const char* window) {
  NameEnd end;
  for (;; window += kWindow) {
    for (uint64_t marks = FindMarks(window); marks != 0; marks &= marks - 1) {
      const char* const mark = window + std::countr_zero(marks);
      if (*mark == '\n') {
        end.newline = mark;
        return end;
      }
      if (end.tab != nullptr) continue;
      if (*mark == '\t') end.tab = mark;
      if (*mark == '.') dots_.push_back({mark, cnt_});
    }
  }
}

void LineScan::NoteOrder(const char* p) {
  const uint64_t high = LoadU64(p);
  const uint64_t low = ToBigEndian(LoadU64(p + 8));
  if (high == kZeros8) {
    has_small_ = true;
    return;
  }
  ordered_ &= high == last_high_ ? low >= last_low_
                                 : ToBigEndian(last_high_) < ToBigEndian(high);
  last_high_ = high;
  last_low_ = low;
}

}  // namespace ksweep
