// Index files: what is refused and how, and where the kernel is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/symbol_index.h"
#include "lib/index/container.h"
#include "lib/index/index_data.h"
#include "lib/index/le.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
}

// The GNU build-id note.
std::string Notes(std::string_view build_id) {
  std::string notes;
  for (uint32_t word : {4u, static_cast<uint32_t>(build_id.size()), 3u}) {
    notes.append(reinterpret_cast<const char*>(&word), 4);
  }
  notes += std::string("GNU\0", 4) + std::string(build_id);
  return notes;
}

// A kernel that was loaded `slide` bytes higher.
std::string Kallsyms(uint64_t slide, std::string_view moved = "") {
  std::string text =
      "0000000000000000 A fixed_percpu_data\n"
      "0000000000001000 A cpu_debug_store\n";
  uint64_t addr = 0xffffffff81000000 + slide;
  const auto add = [&](std::string_view name) {
    text += absl::StrFormat("%016x T ", addr + (name == moved ? 16 : 0)) +
            std::string(name) + "\n";
    addr += 0x100;
  };
  add("_stext");
  for (int i = 0; i < 2000; ++i) {
    add("core_function_" + std::to_string(i));
  }
  add("_end");
  text +=
      "ffffffffc0300000 t drv_alloc\t[drvx]\n"
      "ffffffffc0400000 t dry\t[drvy]\n";
  return text;
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    SetKernel(0);
    testing::BtfBuilder core;
    const uint32_t proto = core.Proto(0, {});
    core.Func("core_function_7", proto);
    testing::BtfBuilder module = testing::BtfBuilder::SplitOf(core);
    module.Func("drv_alloc", proto);
    kernel_.WriteBtf("", core.Build())
        .WriteBtf("drvx", module.Build())
        .WriteBtf("drvy", "damaged");
  }

  void SetKernel(uint64_t slide, std::string_view moved = "") {
    kernel_.Write(KernelFile::kKallsyms, Kallsyms(slide, moved));
  }
  void SetIds(std::string_view build_id, std::string_view boot_id) {
    kernel_.Write(KernelFile::kNotes, Notes(build_id))
        .Write(KernelFile::kBootId, std::string(boot_id) + "\n");
  }

  SymbolIndex Build() {
    absl::StatusOr<SymbolIndex> index =
        SymbolIndex::FromKernel(kernel_.files());
    EXPECT_TRUE(index.ok()) << index.status();
    index = index->WithKernelBtf(kernel_.files());
    EXPECT_TRUE(index.ok()) << index.status();
    return *index;
  }
  void BuildAndSave() { ASSERT_EQ(Build().Save(path()), absl::OkStatus()); }

  std::string path() const { return kernel_.root() + "/index"; }

  absl::StatusOr<SymbolIndex> Open(Relocation relocation,
                                   bool verify = false) const {
    OpenOptions options;
    options.relocation = relocation;
    options.kernel = kernel_.files();
    options.verify = verify;
    return SymbolIndex::Open(path(), options);
  }

  testing::FakeKernel kernel_;
};

TEST_F(FileTest, ComesBackAsItWas) {
  SetIds("some build", "some boot");
  BuildAndSave();
  const auto index = Open(Relocation::kToKernel);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->Verify(), absl::OkStatus());
  EXPECT_EQ(index->size(), Build().size());
  EXPECT_EQ(index->FindAddress("core_function_7").addr, 0xffffffff81000800);
  EXPECT_EQ(index->FindAddress("drv_alloc").addr, 0xffffffffc0300000);
  const IndexStats stats = index->Stats();
  EXPECT_EQ(stats.build_id, "some build");
  EXPECT_EQ(stats.slide, 0u);
  EXPECT_EQ(stats.modules.owners, 2u);
  EXPECT_EQ(stats.file_bytes, ReadFile(path()).size());
}

TEST_F(FileTest, TheSameSymbolsMakeTheSameFile) {
  BuildAndSave();
  const std::string first = ReadFile(path());
  BuildAndSave();
  EXPECT_TRUE(first == ReadFile(path()));
}

TEST_F(FileTest, BugCase26_TheSlideOfTheRunningKernel) {
  for (std::string_view build_id : {"", "some build"}) {
    SetKernel(0);
    if (!build_id.empty()) SetIds(build_id, "boot 1");
    BuildAndSave();
    SetKernel(0x22000000);
    if (!build_id.empty()) SetIds(build_id, "boot 2");
    const auto index = Open(Relocation::kToKernel);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->Stats().slide, 0x22000000u);
    EXPECT_EQ(index->FindAddress("core_function_7").addr, 0xffffffffa3000800);
    EXPECT_EQ(index->FindAddress("cpu_debug_store").addr, 0x1000u);
    const auto found = index->Symbolize(0xffffffffa3000801);
    ASSERT_EQ(found->symbols.size(), 1u);
    EXPECT_EQ(found->symbols[0].name, "core_function_7");
    EXPECT_TRUE(index->Symbolize(0xffffffff81000801)->symbols.empty());
    // Modules are of the other boot.
    EXPECT_TRUE(index->Stats().modules_left_out);
    EXPECT_FALSE(index->FindAddress("drv_alloc").found());
    const auto renewed = index->WithModules(kernel_.files());
    ASSERT_TRUE(renewed.ok()) << renewed.status();
    EXPECT_TRUE(renewed->FindAddress("drv_alloc").found());
    EXPECT_EQ(renewed->Verify(), absl::OkStatus());
  }
}

TEST_F(FileTest, BugCase26_SymbolsThatMovedBySomethingElse) {
  // With a build id only those behind `_stext` are compared, else some of all.
  struct Case {
    const char* moved;
    bool with_ids;
  };
  for (const Case& c :
       {Case{"core_function_7", true}, Case{"core_function_1826", false}}) {
    SetKernel(0);
    if (c.with_ids) SetIds("some build", "boot");
    BuildAndSave();
    SetKernel(0x1000000, c.moved);
    const auto index = Open(Relocation::kToKernel);
    EXPECT_TRUE(absl::IsFailedPrecondition(index.status())) << index.status();
    EXPECT_THAT(std::string(index.status().message()), HasSubstr(c.moved));
    std::filesystem::remove(kernel_.files().Path(KernelFile::kNotes));
  }
}

TEST_F(FileTest, AnotherBuildIsStale) {
  SetIds("\x01\x02", "boot");
  BuildAndSave();
  SetIds("\x01\x03", "boot");
  const auto index = Open(Relocation::kToKernel);
  EXPECT_TRUE(absl::IsFailedPrecondition(index.status())) << index.status();
  EXPECT_THAT(std::string(index.status().message()), HasSubstr("0102"));
  EXPECT_THAT(std::string(index.status().message()), HasSubstr("0103"));
  EXPECT_TRUE(Open(Relocation::kAsBuilt).ok());
}

TEST_F(FileTest, HiddenAddressesTellNoSlide) {
  BuildAndSave();
  kernel_
      .Write(KernelFile::kKallsyms,
             "0000000000000000 T _stext\n0000000000000000 T vfs_read\n")
      .Write(KernelFile::kKptrRestrict, "2\n");
  const auto index = Open(Relocation::kToKernel);
  EXPECT_TRUE(absl::IsFailedPrecondition(index.status())) << index.status();
  EXPECT_THAT(std::string(index.status().message()),
              HasSubstr("kptr_restrict is 2"));
}

TEST_F(FileTest, GivenStext) {
  BuildAndSave();
  OpenOptions options;
  options.relocation = Relocation::kToStext;
  options.stext = 0xffffffff90000000;
  const auto index = SymbolIndex::Open(path(), options);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->FindAddress("core_function_0").addr, 0xffffffff90000100);
  EXPECT_EQ(index->FindAddress("cpu_debug_store").addr, 0x1000u);
  EXPECT_TRUE(index->Stats().modules_left_out);
}

TEST_F(FileTest, WhatIsWrittenAppearsAtOnce) {
  BuildAndSave();
  struct stat info;
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07133, 0u) << "others may read it, not more";
  // An index that is open stays as it was.
  const auto index = Open(Relocation::kAsBuilt);
  ASSERT_TRUE(index.ok());
  ASSERT_EQ(SymbolIndex().Save(path()), absl::OkStatus());
  EXPECT_TRUE(index->FindAddress("core_function_7").found());
  EXPECT_EQ(index->Verify(), absl::OkStatus());
  EXPECT_EQ(Open(Relocation::kAsBuilt)->size(), 0u);
  // Nothing is left beside it.
  for (const auto& entry :
       std::filesystem::directory_iterator(kernel_.root())) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".new")));
  }
}

TEST_F(FileTest, CannotBeWrittenOrRead) {
  EXPECT_TRUE(absl::IsNotFound(
      SymbolIndex().Save(kernel_.root() + "/no/folder/index")));
  EXPECT_TRUE(absl::IsFailedPrecondition(SymbolIndex().Save(kernel_.root())));
  EXPECT_TRUE(absl::IsNotFound(Open(Relocation::kAsBuilt).status()));
  WriteFile(path(), "");
  EXPECT_TRUE(absl::IsInvalidArgument(Open(Relocation::kAsBuilt).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(SymbolIndex::Open(kernel_.root(), {}).status()));
}

TEST_F(FileTest, ASpecialFileIsNotReplaced) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const absl::Status status = SymbolIndex().Save(path());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path()), HasSubstr("special file")));
  EXPECT_TRUE(std::filesystem::is_fifo(path()));
}

struct DamageCase {
  const char* name;
  void (*damage)(std::string*);
  absl::StatusCode code;
  const char* message;
};

// Offsets in the header, see container.h.
constexpr size_t kMarkAt = 8, kVersionAt = 12, kBytesAt = 16, kCountAt = 24;

const DamageCase kDamageCases[] = {
    {"AnotherMagic", [](std::string* f) { (*f)[0] = 'k'; },
     absl::StatusCode::kInvalidArgument, "not a symbol index"},
    {"Text", [](std::string* f) { *f = "ffffffff81000000 T _stext\n"; },
     absl::StatusCode::kInvalidArgument, "not a symbol index"},
    {"OtherByteOrder",
     [](std::string* f) { f->replace(kMarkAt, 4, "\x01\x02\x03\x04"); },
     absl::StatusCode::kInvalidArgument, "other byte order"},
    {"NoByteOrder",
     [](std::string* f) { f->replace(kMarkAt, 4, "\x01\x02\x03\x05"); },
     absl::StatusCode::kDataLoss, "byte order mark"},
    {"LaterVersion", [](std::string* f) { ++(*f)[kVersionAt]; },
     absl::StatusCode::kInvalidArgument, "version 3"},
    {"EarlierVersion", [](std::string* f) { --(*f)[kVersionAt]; },
     absl::StatusCode::kInvalidArgument, "version 3"},
    {"OnlyTheMagic", [](std::string* f) { f->resize(8); },
     absl::StatusCode::kDataLoss, "cut off"},
    {"HalfAHeader", [](std::string* f) { f->resize(30); },
     absl::StatusCode::kDataLoss, "cut off"},
    {"CutOff", [](std::string* f) { f->pop_back(); },
     absl::StatusCode::kDataLoss, "bytes instead of"},
    {"MoreBehind", [](std::string* f) { *f += "x"; },
     absl::StatusCode::kDataLoss, "bytes instead of"},
    {"ManySections",
     [](std::string* f) { StoreLe<uint32_t>((1u << 31) + 1, &(*f)[kCountAt]); },
     absl::StatusCode::kDataLoss, "too many sections"},
    {"SectionCount", [](std::string* f) { --(*f)[kCountAt]; },
     absl::StatusCode::kDataLoss, "header's checksum"},
    {"SectionTable", [](std::string* f) { ++(*f)[60]; },
     absl::StatusCode::kDataLoss, "header's checksum"},
    {"FileSize",
     [](std::string* f) { StoreLe<uint64_t>(UINT64_MAX, &(*f)[kBytesAt]); },
     absl::StatusCode::kDataLoss, "bytes instead of"},
};

TEST_F(FileTest, BugCase78_DamagedHeadersAreRefused) {
  BuildAndSave();
  const std::string good = ReadFile(path());
  for (const DamageCase& c : kDamageCases) {
    std::string bad = good;
    c.damage(&bad);
    WriteFile(path(), bad);
    const absl::Status status = Open(Relocation::kAsBuilt).status();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.name;
    EXPECT_THAT(std::string(status.message()), StartsWith(path() + ": "))
        << c.name;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(": :"))) << c.name;
  }
}

// Uses all that an index offers. Only that it comes back matters.
void UseAll(const SymbolIndex& index) {
  for (const char* name : {"core_function_7", "_stext", "drv_alloc", "no",
                           "__pfx_core_function_7"}) {
    index.FindAddress(name);
    (void)index.Find(name).ok();
  }
  for (uint64_t addr : {0x1000ull, 0xffffffff81000801ull, 0xffffffff8107d100ull,
                        0xffffffffc0300000ull, ~0ull}) {
    (void)index.Symbolize(addr).ok();
  }
  (void)index.ForEach([](const IndexSymbolView&) { return true; }).ok();
  for (uint32_t id : {1u, 2u, 3u, 7u, 100u}) {
    (void)index.FindBtf(id).ok();
    (void)index.FindBtf("drvx", id).ok();
    (void)index.FindBtf("drvy", id).ok();
  }
}

// Sections by number, with checksums that fit again after a change.
class SectionEditor {
 public:
  explicit SectionEditor(std::string_view file) {
    const auto container = Container::Parse(file);
    EXPECT_TRUE(container.ok()) << container.status();
    for (const auto& [kind, bytes] : container->sections()) {
      sections_[kind] = std::string(bytes);
    }
  }
  std::map<SectionKind, std::string>& sections() { return sections_; }
  std::string Pack() const {
    Sections views;
    for (const auto& [kind, bytes] : sections_) views[kind] = bytes;
    return PackContainer(views);
  }

 private:
  std::map<SectionKind, std::string> sections_;
};

TEST_F(FileTest, BugCase77_EveryBytesDamageIsFoundByVerifying) {
  BuildAndSave();
  const std::string good = ReadFile(path());
  for (size_t at = 0; at < good.size(); at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    WriteFile(path(), bad);
    const auto index = Open(Relocation::kAsBuilt);
    if (!index.ok()) continue;
    UseAll(*index);
    // Bytes between sections are none of anyone.
    const bool is_used = Container::Parse(bad)->CheckAll() != absl::OkStatus();
    EXPECT_EQ(index->Verify().ok(), !is_used) << at;
    EXPECT_EQ(Open(Relocation::kAsBuilt, true).ok(), !is_used) << at;
  }
}

TEST_F(FileTest, BugCase77_EverySectionCutOffOrMissing) {
  BuildAndSave();
  const std::string good = ReadFile(path());
  const std::map<SectionKind, std::string> sections =
      SectionEditor(good).sections();
  for (const auto& [kind, bytes] : sections) {
    for (size_t size : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      SectionEditor editor(good);
      if (size == bytes.size()) continue;
      editor.sections()[kind].resize(size);
      WriteFile(path(), editor.Pack());
      const auto index = Open(Relocation::kAsBuilt, true);
      EXPECT_TRUE(absl::IsDataLoss(index.status()))
          << kind << " " << size << " " << index.status();
    }
    SectionEditor editor(good);
    editor.sections().erase(kind);
    WriteFile(path(), editor.Pack());
    // Without the description of modules there are none.
    const bool optional = kind == kModulesInfoSection || kind == kBtfSection ||
                          kind == kModulesBtfSection;
    EXPECT_EQ(Open(Relocation::kAsBuilt).ok(), optional) << kind;
  }
}

// Damage with checksums that fit, as someone would make it on purpose.
TEST_F(FileTest, BugCase77_NothingReadsOutsideWhateverTheBytes) {
  BuildAndSave();
  const std::string good = ReadFile(path());
  uint32_t state = 1;
  const auto random = [&state] {
    state = state * 1664525 + 1013904223;
    return state >> 8;
  };
  int opened = 0;
  for (int round = 0; round < 400; ++round) {
    SectionEditor editor(good);
    for (auto& [kind, bytes] : editor.sections()) {
      if (bytes.empty() || random() % 4 != 0) continue;
      for (int i = 0; i < 3; ++i) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
    }
    WriteFile(path(), editor.Pack());
    const auto index = Open(Relocation::kAsBuilt);
    if (!index.ok()) continue;
    ++opened;
    UseAll(*index);
    (void)index->Verify().ok();
  }
  EXPECT_GT(opened, 20) << "few got past the first check";
}

TEST_F(FileTest, ReadersAtOnce) {
  BuildAndSave();
  const auto index = Open(Relocation::kAsBuilt);
  ASSERT_TRUE(index.ok());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, copy = *index, t] {
      for (int i = 0; i < 300; ++i) {
        const int n = (i * 7 + t * 13) % 2000;
        const uint64_t addr = 0xffffffff81000100 + 0x100 * n;
        const std::string name = "core_function_" + std::to_string(n);
        wrong += index->FindAddress(name).addr != addr;
        const auto found = copy.Symbolize(addr + 1);
        wrong += !found.ok() || found->symbols.size() != 1 ||
                 found->symbols[0].name != name;
        SymbolizedName first;
        wrong += copy.SymbolizeFirst(addr, &first) != LookupState::kFound;
        const std::string_view names[] = {name, "drv_alloc", "absent"};
        AddressLookup batch[3];
        copy.FindAddresses(names, absl::MakeSpan(batch));
        wrong += batch[0].addr != addr || !batch[1].found() || batch[2].found();
        wrong += copy.FindBtf(2)->size() != 1;
        wrong += copy.FindBtf("drvx", 3)->size() != 1;
      }
      int walked = 0;
      wrong += !copy.FindPrefix("core_function_1",
                                [&](const IndexSymbolView&) {
                                  ++walked;
                                  return true;
                                })
                    .ok();
      wrong += walked != 1111;
      wrong += !copy.Verify().ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ksweep
