#include "lib/attach/live/read_back.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/attach/linking/link_info.h"

namespace ksweep {
namespace {

// More than any landing pad: tracing.multi tells ftrace locations.
constexpr uint64_t kEntryBytes = 16;

class Comparison {
 public:
  explicit Comparison(const AttachmentState& state) : state_(state) {}

  absl::Status AddLink(uint32_t link);
  ReadBackReport Take() &&;

 private:
  void CompareFunctions(const LinkInfo& info, uint32_t link);
  void CompareTrampoline(const LinkInfo& info, uint32_t link);
  void CompareOne(const LinkInfo& info, size_t i, uint32_t slot);

  // Of the link's slots the one that is entered at `addr`; kNone if none is.
  static constexpr size_t kNone = SIZE_MAX;
  size_t Find(uint64_t addr) const;

  const AttachmentState& state_;
  ReadBackReport report_;
  // Of the link under way: by address.
  std::vector<std::pair<uint64_t, uint32_t>> slots_;
};

absl::Status Comparison::AddLink(uint32_t link) {
  absl::StatusOr<LinkInfo> info = ReadLinkInfo(
      *state_.sys, state_.links[link].fd(), LinkDetail::kFunctions);
  if (!info.ok()) return info.status();
  report_.cnt += info->cnt;
  report_.missed += info->missed;
  if (!info->addrs.empty() && !state_.resolution.by_name()) {
    CompareFunctions(*info, link);
  } else if (info->btf_id != 0) {
    CompareTrampoline(*info, link);
  } else {
    ++report_.untold_links;
  }
  return absl::OkStatus();
}

size_t Comparison::Find(uint64_t addr) const {
  const auto after = std::upper_bound(
      slots_.begin(), slots_.end(), addr,
      [](uint64_t value, const std::pair<uint64_t, uint32_t>& slot) {
        return value < slot.first;
      });
  if (after == slots_.begin()) return kNone;
  const auto found = std::prev(after);
  if (addr - found->first >= kEntryBytes) return kNone;
  return static_cast<size_t>(found - slots_.begin());
}

void Comparison::CompareOne(const LinkInfo& info, size_t i, uint32_t slot) {
  if (info.cookies.empty()) return;
  const uint64_t wanted = state_.slots[slot].cookie;
  if (info.cookies[i] == wanted) return;
  report_.wrong_cookies.push_back({slot, info.cookies[i], wanted});
}

void Comparison::CompareFunctions(const LinkInfo& info, uint32_t link) {
  report_.cookies_told &= !info.cookies.empty();
  slots_.clear();
  for (uint32_t slot : state_.members[link].slots) {
    // Taken over without being asked for.
    if (state_.slots[slot].target == kNoTarget) continue;
    slots_.emplace_back(state_.slots[slot].addr, slot);
  }
  std::sort(slots_.begin(), slots_.end());
  std::vector<bool> seen(slots_.size());
  for (size_t i = 0; i < info.addrs.size(); ++i) {
    const size_t found = Find(info.addrs[i]);
    if (found == kNone || seen[found]) {
      const uint64_t cookie = info.cookies.empty() ? 0 : info.cookies[i];
      report_.unasked.push_back({info.addrs[i], cookie, link});
      continue;
    }
    seen[found] = true;
    CompareOne(info, i, slots_[found].second);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) report_.absent.push_back(slots_[i].second);
  }
}

// The link of one function's trampoline, which tells no address.
void Comparison::CompareTrampoline(const LinkInfo& info, uint32_t link) {
  report_.cookies_told = false;
  for (uint32_t slot : state_.members[link].slots) {
    const uint32_t target = state_.slots[slot].target;
    if (target >= state_.resolution.targets().size() ||
        state_.resolution.targets()[target].btf_id != info.btf_id) {
      report_.absent.push_back(slot);
    }
  }
}

ReadBackReport Comparison::Take() && {
  std::sort(report_.absent.begin(), report_.absent.end());
  return std::move(report_);
}

// Writes at most ten lines.
class Lines {
 public:
  template <typename... Args>
  void Add(const absl::FormatSpec<Args...>& format, const Args&... args) {
    if (++cnt_ <= kMost) absl::StrAppendFormat(&text_, format, args...);
  }

  std::string Take() && {
    if (cnt_ > kMost) {
      absl::StrAppendFormat(&text_, "  … and %d more\n", cnt_ - kMost);
    }
    return std::move(text_);
  }

 private:
  static constexpr size_t kMost = 10;

  std::string text_;
  size_t cnt_ = 0;
};

}  // namespace

absl::StatusOr<ReadBackReport> ReadBack(const AttachmentState& state) {
  Comparison comparison(state);
  for (uint32_t link = 0; link < state.links.size(); ++link) {
    const absl::Status status = comparison.AddLink(link);
    if (!status.ok()) return status;
  }
  return std::move(comparison).Take();
}

std::string ReadBackReport::ToString() const {
  std::string text = absl::StrFormat(
      "the kernel has %d functions, missed %d hits: %d absent, %d not asked "
      "for, %d with another cookie",
      cnt, missed, absent.size(), unasked.size(), wrong_cookies.size());
  if (untold_links > 0) {
    absl::StrAppendFormat(&text, "; does not tell the functions of %d links",
                          untold_links);
  }
  text += "\n";
  Lines lines;
  for (uint32_t slot : absent) lines.Add("  absent: slot %d\n", slot);
  for (const Unasked& u : unasked) {
    lines.Add("  not asked for: 0x%x, cookie %d\n", u.addr, u.cookie);
  }
  for (const WrongCookie& w : wrong_cookies) {
    lines.Add("  slot %d has cookie %d instead of %d\n", w.slot, w.cookie,
              w.wanted);
  }
  return text + std::move(lines).Take();
}

}  // namespace ksweep
