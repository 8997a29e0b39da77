// What must hold for any requests and any text, and what it may cost.

#include <algorithm>
#include <random>

#include "selftests/testing/btf_builder.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using testing::Describe;
using testing::FakeKernel;

// A small kernel full of hard cases: few names, few addresses, so that names
// repeat, share addresses, and have suffixes.
class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 60; ++i) AddLine();
    std::sort(lines_.begin(), lines_.end());
    lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  }

  // Lines in the order that the kernel has, or in none.
  std::string Text(bool shuffled) {
    std::vector<std::string> lines = lines_;
    if (shuffled) {
      std::shuffle(lines.begin(), lines.end(), random_);
    } else {
      std::stable_partition(lines.begin(), lines.end(),
                            [](const std::string& line) {
                              return line.find('\t') == std::string::npos;
                            });
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
  std::string FilterList(bool addrs) {
    std::string list;
    for (const std::string& line : lines_) {
      const std::string entry = testing::AllTraceable(line + "\n");
      if (entry.empty() || line.back() == 'p' || line.back() == '0') continue;
      list += addrs ? entry : entry.substr(entry.find(' ') + 1);
    }
    return list;
  }
  std::vector<Request> Requests() {
    std::vector<Request> requests;
    const size_t cnt = 1 + Pick(8);
    const char* const forms[] = {"aa",
                                 "ab",
                                 "ba",
                                 "a*",
                                 "*b",
                                 "?a*",
                                 "m1:*",
                                 "m?:a*",
                                 "!ab",
                                 "!m1:a*",
                                 "bb",
                                 "aa.isra.0",
                                 "b[!a]",
                                 "vmlinux:a*",
                                 "0xffffffff81000010",
                                 "0xffffffff81000024",
                                 "syscall:a",
                                 "*",
                                 "nope",
                                 "__pfx_aa",
                                 "takes:x",
                                 "takes:y@2",
                                 "btf:6",
                                 "btf:m1:13"};
    for (size_t i = 0; i < cnt; ++i) {
      requests.push_back(
          *Request::Parse(forms[Pick(sizeof(forms) / sizeof(forms[0]))]));
      if (Pick(4) == 0) requests.back().set_cookie(Pick(3));
      if (Pick(6) == 0) requests.back().set_unique();
    }
    requests.push_back(*Request::Parse("[abm]*"));
    return requests;
  }
  // Some of the names, with prototypes that a trampoline can and cannot serve;
  // one twice. BTF of m1, none of m2.
  static void WriteBtf(FakeKernel* kernel) {
    testing::BtfBuilder core;
    const uint32_t x = core.Ptr(core.Struct("x", 8));
    const uint32_t y = core.Ptr(core.Struct("y", 8));
    const uint32_t fits = core.Proto(0, {x, y});
    core.Func("aa", fits);
    core.Func("ab", core.Proto(0, {x, 0}));
    core.Func("ba", fits);
    core.Func("ba", core.Proto(0, {y}));
    core.Func("bb", fits);
    kernel->WriteBtf("", core.Build());
    testing::BtfBuilder m1 = testing::BtfBuilder::SplitOf(core);
    m1.Func("aa", fits);
    m1.Func("bb", fits);
    kernel->WriteBtf("m1", m1.Build());
  }
  size_t Pick(size_t cnt) { return random_() % cnt; }
  std::mt19937& random() { return random_; }

 private:
  void AddLine() {
    const char* const names[] = {"aa",          "ab",        "ba",
                                 "bb",          "aa.isra.0", "ab.llvm.77",
                                 "aa.part.1",   "__pfx_aa",  "ba.cold",
                                 "__x64_sys_a", "abp",       "m_x"};
    const char types[] = "tTtTwWd";
    const char* const owners[] = {"",       "",       "",       "",
                                  "\t[m1]", "\t[m2]", "\t[bpf]"};
    const char* owner = owners[Pick(7)];
    const uint64_t base =
        owner[0] == '\0'
            ? 0xffffffff81000000
            : 0xffffffffc0000000 + static_cast<uint64_t>(owner[3]) * 0x1000;
    lines_.push_back(absl::StrFormat("%016x %c %s%s", base + 16 * Pick(12),
                                     types[Pick(7)], names[Pick(12)], owner));
  }

  std::mt19937 random_;
  std::vector<std::string> lines_;
};

std::string ResolveText(const std::string& kallsyms, RandomKernel* random,
                        bool addrs, std::vector<Request> requests, bool clones,
                        bool trampolines) {
  FakeKernel kernel;
  RandomKernel::WriteBtf(&kernel);
  kernel.Write(KernelFile::kKallsyms, kallsyms);
  kernel.Write(
      addrs ? KernelFile::kFilterFunctionsAddrs : KernelFile::kFilterFunctions,
      random->FilterList(addrs));
  ResolveOptions options;
  options.missing = OnMissing::kReport;
  options.clones = clones;
  if (trampolines) options.kinds.Add(Kind::kFentryMulti);
  absl::StatusOr<Resolution> r =
      Resolve(std::move(requests), kernel.files(), options);
  if (!r.ok()) return std::string(r.status().message());

  // No address twice, ascending; requests of a target do serve it.
  for (size_t i = 1; i < r->targets().size(); ++i) {
    EXPECT_LE(r->targets()[i - 1].addr, r->targets()[i].addr);
    EXPECT_FALSE(r->targets()[i - 1].addr == r->targets()[i].addr &&
                 r->targets()[i - 1].module == r->targets()[i].module);
  }
  // Every request has an answer: a target, or a line in unmatched.
  for (size_t i = 0; i < r->requests().size(); ++i) {
    const bool served = !r->ForRequest(i).empty();
    const bool unmatched =
        std::any_of(r->unmatched().begin(), r->unmatched().end(),
                    [i](const Unmatched& u) { return u.request == i; });
    if (r->requests()[i].deny()) continue;
    EXPECT_NE(served, unmatched) << r->requests()[i].ToString();
  }
  return Describe(*r);
}

TEST(Properties, OrderOfLinesAndRequestsDoesNotMatter) {
  int targets = 0, omissions = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    RandomKernel random(seed);
    const std::vector<Request> requests = random.Requests();
    const bool addrs = seed % 3 != 0;
    const bool clones = seed % 2 == 0;
    const bool trampolines = seed % 5 < 2;
    const std::string want = ResolveText(random.Text(false), &random, addrs,
                                         requests, clones, trampolines);
    targets += want.find("target ") != std::string::npos;
    omissions += want.find("omission ") != std::string::npos;
    EXPECT_EQ(ResolveText(random.Text(true), &random, addrs, requests, clones,
                          trampolines),
              want)
        << "lines shuffled, seed " << seed;
    // `requests` in a target and the text of a refusal follow the order.
    std::vector<Request> shuffled = requests;
    std::shuffle(shuffled.begin(), shuffled.end(), random.random());
    std::string got = ResolveText(random.Text(false), &random, addrs, shuffled,
                                  clones, trampolines);
    const auto sorted = [](std::string text) {
      std::vector<std::string> lines;
      for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        lines.push_back(text.substr(at, end - at));
        at = end == std::string::npos ? end : end + 1;
      }
      std::sort(lines.begin(), lines.end());
      return lines;
    };
    EXPECT_EQ(sorted(got), sorted(want)) << "requests shuffled, seed " << seed;
  }
  EXPECT_GT(targets, 100);
  EXPECT_GT(omissions, 100);
}

TEST(Properties, BatchBordersDoNotMatter) {
  // Aliases that straddle the border of what is read at once, at any place.
  std::string text;
  uint64_t addr = 0xffffffff81000000;
  std::string list;
  for (int i = 0; i < 9000; ++i, addr += 16) {
    text += absl::StrFormat("%x T first_%d\n", addr, i);
    text += absl::StrFormat("%x t wanted_%d\n", addr, i);
    text += absl::StrFormat("%x W last_name_%d\n", addr, i);
    list += absl::StrFormat("%x last_name_%d\n", addr, i);
  }
  const Resolution r = testing::MustResolve({text, list}, {"wanted_*"});
  ASSERT_EQ(r.targets().size(), 9000u);
  for (const Target& target : r.targets()) {
    ASSERT_EQ(target.aliases.size(), 2u) << target.name;
    EXPECT_EQ(target.type, 'T');
  }
}

// Counting: what is opened, and how often it is read.
TEST(Cost, BugCase74_OneOpenAndOnePassOfEachFile) {
  FakeKernel kernel;
  kernel.Unpack("linux-6.12.95");
  std::vector<std::string> texts = {"vfs_*", "tcp_*", "[x-z]*_lock"};
  for (int i = 0; i < 40; ++i) texts.push_back("vfs_read");
  for (int i = 0; i < 10; ++i) texts.push_back("missing_" + std::to_string(i));
  for (int i = 1; i < 6; ++i) texts.push_back("btf:" + std::to_string(i));
  testing::OpenCounter counter;
  const KernelFile all[] = {KernelFile::kKallsyms, KernelFile::kFilterFunctions,
                            KernelFile::kFilterFunctionsAddrs,
                            KernelFile::kBlacklist};
  for (KernelFile file : all) counter.Watch(kernel.Path(file));
  counter.Watch(kernel.files().BtfPath(""));
  counter.Watch(kernel.files().BtfPath("xfs"));
  ResolveOptions options;
  options.missing = OnMissing::kReport;
  absl::StatusOr<Resolution> r =
      Resolve(testing::ParseAll(texts), kernel.files(), options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(counter.Opens(kernel.Path(KernelFile::kKallsyms)), 1);
  EXPECT_EQ(counter.Opens(kernel.Path(KernelFile::kFilterFunctionsAddrs)), 1);
  // Files that the plan does not need are not opened.
  EXPECT_EQ(counter.Opens(kernel.Path(KernelFile::kFilterFunctions)), 0);
  EXPECT_EQ(counter.Opens(kernel.Path(KernelFile::kBlacklist)), 0);
  EXPECT_EQ(counter.Opens(kernel.files().BtfPath("")), 1);
  EXPECT_EQ(counter.Opens(kernel.files().BtfPath("xfs")), 0);
  ASSERT_EQ(r->stats().files.size(), 3u);
  for (const FileStats& file : r->stats().files) {
    EXPECT_EQ(file.opens, 1u) << file.path;
    EXPECT_EQ(file.passes, 1u) << file.path;
  }
  // A pass is all bytes once.
  EXPECT_EQ(
      r->stats().files[0].bytes,
      testing::Gunzip(testing::DataFolder() + "/linux-6.12.95/proc/kallsyms.gz")
          .size());

  options.kinds = {Kind::kKprobe};
  r = Resolve(testing::ParseAll(texts), kernel.files(), options);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(counter.Opens(kernel.Path(KernelFile::kFilterFunctionsAddrs)), 1);
  EXPECT_EQ(counter.Opens(kernel.Path(KernelFile::kBlacklist)), 1);
}

TEST(Cost, BugCase49_TheFilterListIsReadOnlyAsFarAsNeeded) {
  FakeKernel kernel;
  kernel.Unpack("linux-7.3.4");
  const auto bytes_for = [&kernel](const char* request) {
    absl::StatusOr<Resolution> r =
        Resolve(testing::ParseAll({request}), kernel.files());
    EXPECT_TRUE(r.ok()) << r.status();
    return r->stats().files[1].bytes;
  };
  const uint64_t all = bytes_for("xfs:xfs_*");
  EXPECT_GT(all, 1900000u);
  // Found and known to be traceable: no more to learn.
  EXPECT_LT(bytes_for("trace_initcall_level_cb"), all / 10);
  EXPECT_LT(bytes_for("vfs_read"), all);
  // Nothing of a module is asked for, or nothing of one matches: the kernel is
  // slow with these lines.
  EXPECT_LT(bytes_for("vmlinux:vfs_*"), all - 100000);
  EXPECT_LT(bytes_for("vfs_*"), all - 100000);
}

TEST(Cost, BugCase76_NothingIsLeftOpen) {
  FakeKernel kernel;
  testing::WriteLists({"ffffffff81000000 t f\n"}, &kernel);
  const int before = testing::OpenDescriptors();
  for (int i = 0; i < 1000; ++i) {
    const char* const request = i % 2 == 0 ? "f" : "nope";
    (void)Resolve(testing::ParseAll({request}), kernel.files());
    (void)Resolve(testing::ParseAll({"f"}), KernelFiles("/nonexistent"));
  }
  EXPECT_EQ(testing::OpenDescriptors(), before);
}

}  // namespace
}  // namespace ksweep
