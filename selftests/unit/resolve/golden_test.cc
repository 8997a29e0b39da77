// Resolves the real dumps and compares with what selftests/data/golden.py, an
// independent implementation, says.

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "gtest/gtest.h"
#include "ksweep/resolve.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

namespace fs = std::filesystem;

struct GoldenCase {
  std::vector<Request> requests;
  ResolveOptions options;
  bool plain_list = false;
  std::vector<std::string> lines;
};

GoldenCase Load(const fs::path& path) {
  GoldenCase golden;
  golden.options.missing = OnMissing::kReport;
  std::istringstream text(testing::Gunzip(path));
  std::string line;
  while (std::getline(text, line)) {
    const size_t tab = line.find('\t');
    const std::string key = line.substr(0, tab);
    const std::string value = line.substr(tab + 1);
    if (key == "kind") {
      golden.options.kinds = {*ParseKind(value)};
    } else if (key == "option") {
      golden.options.clones |= value == "clones";
      if (value == "nodefault_deny") golden.options.default_deny = false;
      golden.plain_list |= value == "list=plain";
    } else if (key == "request") {
      absl::StatusOr<Request> request = Request::Parse(value);
      if (!request.ok()) ADD_FAILURE() << path << ": " << request.status();
      if (request.ok()) golden.requests.push_back(*request);
    } else {
      golden.lines.push_back(line);
    }
  }
  return golden;
}

std::string OrDash(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

template <typename Items>
std::string Join(const Items& items) {
  std::ostringstream joined;
  for (const auto& item : items) {
    if (joined.tellp() != 0) joined << ',';
    joined << item;
  }
  return OrDash(joined.str());
}

std::vector<std::string> Lines(const Resolution& resolution) {
  std::vector<std::string> lines;
  for (const Target& t : resolution.targets()) {
    lines.push_back(absl::StrFormat("target\t0x%016x\t%c\t%s\t%s\t%s\t%s\t%s",
                                    t.addr, t.type, std::string(t.name),
                                    OrDash(t.module), t.clone ? "clone" : "-",
                                    Join(t.aliases), Join(t.requests)));
  }
  for (const Target& t : resolution.targets()) {
    if (t.btf_id == 0) continue;
    lines.push_back(absl::StrFormat("btf\t0x%016x\t%s\t%d", t.addr,
                                    OrDash(t.module), t.btf_id));
  }
  for (const Omission& o : resolution.omissions()) {
    lines.push_back(absl::StrFormat(
        "omission\t0x%016x\t%s\t%s\t%s\t%d", o.addr, std::string(o.name),
        OrDash(o.module), std::string(ReasonName(o.reason)), o.request));
  }
  for (const Unmatched& u : resolution.unmatched()) {
    lines.push_back(absl::StrFormat("unmatched\t%d\t%s\t%s", u.request,
                                    std::string(ReasonName(u.reason)),
                                    Join(u.candidates)));
  }
  return lines;
}

// Reports the first difference only: there can be tens of thousands.
void Compare(const std::string& name, const std::vector<std::string>& got,
             const std::vector<std::string>& want) {
  const size_t common = std::min(got.size(), want.size());
  const size_t at = static_cast<size_t>(
      std::mismatch(got.begin(), got.begin() + static_cast<ptrdiff_t>(common),
                    want.begin())
          .first -
      got.begin());
  if (at == common && got.size() == want.size()) return;
  ADD_FAILURE() << name << ": " << got.size() << " lines, not " << want.size()
                << "; line " << at << " is\n"
                << (at < got.size() ? got[at] : "(none)") << "\nnot\n"
                << (at < want.size() ? want[at] : "(none)");
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, DumpsResolveAsTheScriptSays) {
  const std::string& dump = GetParam();
  testing::FakeKernel kernel;
  kernel.Unpack(dump);
  int cases = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(
           fs::path(testing::DataFolder()) / "golden" / dump)) {
    GoldenCase golden = Load(entry.path());
    KernelFiles files = kernel.files();
    if (golden.plain_list) files.Disable(KernelFile::kFilterFunctionsAddrs);
    absl::StatusOr<Resolution> resolution =
        Resolve(golden.requests, files, golden.options);
    ASSERT_TRUE(resolution.ok()) << entry.path() << resolution.status();
    Compare(dump + "/" + entry.path().stem().string(), Lines(*resolution),
            golden.lines);
    ++cases;
  }
  EXPECT_GT(cases, 20);
}

INSTANTIATE_TEST_SUITE_P(Dumps, Golden,
                         ::testing::Values("linux-6.1.0", "linux-6.12.95",
                                           "linux-7.3.4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace ksweep
