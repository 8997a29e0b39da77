#include "calltrace/text.h"

#include <string_view>

#include "absl/strings/str_format.h"
#include "common/error_name.h"
#include "common/table.h"

namespace examples {
namespace {

constexpr int64_t kMaxErrno = 4095;  // as the kernel's IS_ERR_VALUE()

char MarkOf(uint64_t ns) {
  struct Mark {
    uint64_t above_ns;
    char mark;
  };
  constexpr Mark kMarks[] = {{1'000'000'000, '$'}, {100'000'000, '@'},
                             {10'000'000, '*'},    {1'000'000, '#'},
                             {100'000, '!'},       {10'000, '+'}};
  for (const Mark& mark : kMarks) {
    if (ns > mark.above_ns) return mark.mark;
  }
  return ' ';
}

// As wide as function_graph's column.
std::string DurationText(const Call& call) {
  switch (call.end) {
    case CallEnd::kReturned:
      break;
    case CallEnd::kMissed:
      return "  missed      ";
    case CallEnd::kRunning:
      return "  running     ";
  }
  const uint64_t ns = call.duration_ns();
  return absl::StrFormat("%c %-12s", MarkOf(ns),
                         absl::StrFormat("%d.%03d us", ns / 1000, ns % 1000));
}

void AppendLine(const Call& call, std::string_view duration,
                std::string_view text, std::string* out) {
  absl::StrAppendFormat(out, "%2d) %-14s|  %*s%s\n", call.cpu, duration,
                        2 * call.depth, "", text);
}

std::string TailOf(const Call& call, std::string_view name) {
  if (call.end != CallEnd::kReturned) {
    return name.empty() ? "" : absl::StrFormat(" /* %s */", name);
  }
  return absl::StrFormat(" /* %s%sret=%s */", name, name.empty() ? "" : " ",
                         ReturnText(call.ret));
}

void AppendClosing(const Call& call, const FunctionNames& names,
                   std::string* out) {
  AppendLine(call, DurationText(call), "}" + TailOf(call, names[call.slot]),
             out);
}

}  // namespace

std::string ReturnText(uint64_t ret) {
  const bool is_int = ret >> 32 == 0;
  const int64_t value =
      is_int ? static_cast<int32_t>(ret) : static_cast<int64_t>(ret);
  if (value < 0 && value >= -kMaxErrno) {
    const std::string name = ErrorName(static_cast<int>(-value));
    return name.front() == 'E' ? "-" + name : absl::StrFormat("%d", value);
  }
  constexpr uint64_t kSmall = 100'000;
  return ret < kSmall ? absl::StrFormat("%d", ret)
                      : absl::StrFormat("0x%x", ret);
}

void AppendTreeText(const CallTree& tree, const FunctionNames& names,
                    std::string* out) {
  const uint64_t us = tree.calls[0].start_ns / 1000;
  absl::StrAppendFormat(
      out, "\n%s-%d, at %d.%06d s%s\n", Printable(tree.comm),
      tree.thread >> 32 ? 0 : tree.thread, us / 1'000'000, us % 1'000'000,
      tree.lost > 0 ? ", " + Count(tree.lost, "call") + " of it lost" : "");
  std::vector<const Call*> open;
  for (size_t i = 0; i < tree.calls.size(); ++i) {
    const Call& call = tree.calls[i];
    for (; open.size() > call.depth; open.pop_back()) {
      AppendClosing(*open.back(), names, out);
    }
    const bool is_leaf =
        i + 1 == tree.calls.size() || tree.calls[i + 1].depth <= call.depth;
    const std::string& name = names[call.slot];
    if (is_leaf) {
      AppendLine(call, DurationText(call), name + "();" + TailOf(call, ""),
                 out);
    } else {
      AppendLine(call, "", name + "() {", out);
      open.push_back(&call);
    }
  }
  for (; !open.empty(); open.pop_back()) {
    AppendClosing(*open.back(), names, out);
  }
}

}  // namespace examples
