#include "calltrace/flame_graph.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "common/table.h"

namespace examples {
namespace {

// All lengths are pixels.
constexpr double kMargin = 10;
constexpr double kWidth = 1180;  // of the widest box
constexpr double kRowHeight = 17;
constexpr double kHeadHeight = 44;
constexpr double kMinBoxWidth = 0.5;
constexpr double kCharWidth = 6.7;  // of the 11 pixel monospace font
constexpr double kTitleCharWidth = 9.1;
constexpr double kTextMargin = 3;

// A click on a box hides what is neither above nor below it, and stretches the
// rest. The boxes of a file are moved by their original places, in data-x and
// data-w, and labels are cut as in LabelOf().
constexpr char kScript[] = R"(<script><![CDATA[
const boxes = [...document.querySelectorAll("g.box")];
const full = %g, margin = %g, charWidth = %g;
function zoom(chosen) {
  const x0 = +chosen.dataset.x, w0 = +chosen.dataset.w, row = +chosen.dataset.row;
  for (const g of boxes) {
    const x = +g.dataset.x, w = +g.dataset.w, below = +g.dataset.row < row;
    const shown = below ? x <= x0 && x + w >= x0 + w0
                        : x >= x0 && x + w <= x0 + w0;
    g.style.display = shown ? "" : "none";
    if (!shown) continue;
    const left = margin + (below ? 0 : (x - x0) / w0 * full);
    const width = below ? full : w / w0 * full;
    const rect = g.querySelector("rect"), text = g.querySelector("text");
    rect.setAttribute("x", left);
    rect.setAttribute("width", width);
    text.setAttribute("x", left + 3);
    const name = g.dataset.name, room = Math.floor((width - 6) / charWidth);
    text.textContent = name.length <= room ? name
        : room < 3 ? "" : name.slice(0, room - 1) + "\u2026";
  }
}
for (const g of boxes) g.addEventListener("click", () => zoom(g));
]]></script>
)";

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped.push_back(c);
    }
  }
  return escaped;
}

uint32_t HashOf(std::string_view text) {
  uint32_t hash = 2166136261;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return hash;
}

// The same function has the same color in every picture; black text can be read
// on each.
std::string ColorOf(std::string_view name, uint32_t row) {
  if (row == 0) return "hsl(0,0%,82%)";
  if (row == 1) return "hsl(100,30%,76%)";
  const uint32_t hash = HashOf(name);
  const bool is_module = !name.empty() && name.back() == ']';
  const uint32_t hue = is_module ? 180 + hash % 40 : 8 + hash % 44;
  return absl::StrFormat("hsl(%d,%d%%,%d%%)", hue,
                         is_module ? 50 : 80 + hash / 64 % 16,
                         66 + hash / 4096 % 9);
}

// As much of the name as fits, or nothing.
std::string LabelOf(std::string_view name, double width,
                    double char_width = kCharWidth) {
  const double room_px = width - 2 * kTextMargin;
  const size_t room =
      room_px > 0 ? static_cast<size_t>(room_px / char_width) : 0;
  if (name.size() <= room) return Escaped(name);
  return room < 3 ? "" : Escaped(name.substr(0, room - 1)) + "…";
}

std::string TimeText(uint64_t ns) {
  const auto number = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return absl::StrFormat("%.3f s", number / 1e9);
  if (ns >= 1'000'000) return absl::StrFormat("%.3f ms", number / 1e6);
  return absl::StrFormat("%.3f us", number / 1e3);
}

class Picture {
 public:
  explicit Picture(const Profile& profile) : root_(profile.root()) {
    rows_ = VisibleRows(root_);
  }

  std::string Draw(std::string_view title) {
    const double width = kWidth + 2 * kMargin;
    const double height = kHeadHeight + rows_ * kRowHeight + kMargin;
    absl::StrAppendFormat(
        &svg_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
        "viewBox=\"0 0 %g %g\" font-family=\"'DejaVu Sans Mono',Menlo,Consolas,"
        "monospace\" font-size=\"11\">\n"
        "<style>.box rect{stroke:#fff;stroke-width:.6}.box "
        "text{pointer-events:none}.box:hover rect{stroke:#000}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        "<text x=\"%g\" y=\"20\" font-size=\"15\">%s</text>\n"
        "<text x=\"%g\" y=\"36\" fill=\"#555\">%s; width is time from entry to "
        "return, sleep included</text>\n",
        width, height, width, height, kMargin,
        LabelOf(title, kWidth, kTitleCharWidth), kMargin,
        TimeText(root_.total_ns));
    if (root_.total_ns > 0) DrawBox(root_, 0, 0);
    absl::StrAppendFormat(&svg_, kScript, kWidth, kMargin, kCharWidth);
    return svg_ + "</svg>\n";
  }

 private:
  double WidthOf(const Profile::Node& node) const {
    if (root_.total_ns == 0) return 0;
    return kWidth * static_cast<double>(node.total_ns) /
           static_cast<double>(root_.total_ns);
  }

  uint32_t VisibleRows(const Profile::Node& node) const {
    if (WidthOf(node) < kMinBoxWidth) return 0;
    uint32_t above = 0;
    for (const auto& [name, child] : node.children) {
      above = std::max(above, VisibleRows(child));
    }
    return above + 1;
  }

  // `x` is from the left end of the widest box. The root is in row 0, the
  // lowest.
  void DrawBox(const Profile::Node& node, double x, uint32_t row) {
    const double width = WidthOf(node);
    if (width < kMinBoxWidth) return;
    const double y = kHeadHeight + (rows_ - 1 - row) * kRowHeight;
    const std::string name = Escaped(node.name);
    absl::StrAppendFormat(
        &svg_,
        "<g class=\"box\" data-x=\"%.2f\" data-w=\"%.2f\" data-row=\"%d\" "
        "data-name=\"%s\"><title>%s</title><rect x=\"%.2f\" y=\"%g\" "
        "width=\"%.2f\" height=\"%g\" fill=\"%s\"/><text x=\"%.2f\" "
        "y=\"%g\">%s</text></g>\n",
        x, width, row, name, TitleOf(node), kMargin + x, y, width, kRowHeight,
        ColorOf(node.name, row), kMargin + x + kTextMargin, y + kRowHeight - 5,
        LabelOf(node.name, width));
    for (const auto& [child_name, child] : node.children) {
      DrawBox(child, x, row + 1);
      x += WidthOf(child);
    }
  }

  std::string TitleOf(const Profile::Node& node) const {
    const std::string share = absl::StrFormat(
        "%s: %s, %.1f %%", Escaped(node.name), TimeText(node.total_ns),
        100.0 * static_cast<double>(node.total_ns) /
            static_cast<double>(root_.total_ns));
    if (node.calls == 0) return share;
    return absl::StrFormat("%s; %s of it itself; %s", share,
                           TimeText(node.self_ns), Count(node.calls, "call"));
  }

  const Profile::Node& root_;
  uint32_t rows_ = 0;
  std::string svg_;
};

}  // namespace

std::string FlameGraphSvg(const Profile& profile, std::string_view title) {
  return Picture(profile).Draw(title);
}

}  // namespace examples
