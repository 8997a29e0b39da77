// Input: a byte that says whether checksums are made to fit again, which lets
// damage through to what reads the parts; then changes to an index file, each
// two bytes of place and the new one, behind a byte for the section if they
// fit.

#include <string>
#include <string_view>
#include <vector>

#include "ksweep/symbol_index.h"
#include "lib/index/container.h"
#include "lib/index/index_data.h"
#include "selftests/fuzz/fuzz_target.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

constexpr std::string_view kSymbols =
    "0000000000001000 A cpu_debug_store\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000010 t __pfx_vfs_read\n"
    "ffffffff81000020 t vfs_read\n"
    "ffffffff81000020 T vfs_read_alias\n"
    "ffffffff81000030 t __pfx_vfs_write\n"
    "ffffffff81000040 t vfs_write\n"
    "ffffffff81000050 t twice\n"
    "ffffffff81000060 t twice\n"
    "ffffffff81000070 r __ksymtab_cpu_debug_store\n"
    "ffffffff81000080 r __ksymtab_vfs_read_alias\n"
    "ffffffff81f00000 d far_away\n"
    "ffffffff81f00001 d \xc3\xa9_is_escaped_\xff\n"
    "ffffffff81f00002 d a_name_of_many_codes_q0w1e2r3t4y5u6i7o8p9a0s1d2f3g4h5\n"
    "ffffffff82f00000 B _end\n"
    "ffffffffc0001000 t a0\t[a]\n"
    "ffffffffc0001040 t twice\t[a]\n"
    "ffffffffc0001020 t b0\t[b]\n"
    "ffffffffc0001060 t b1\t[b]\n";

// With BTF ids of the core, of module a, and of module b, whose BTF is damaged.
SymbolIndex GoodIndex() {
  testing::BtfBuilder core;
  const uint32_t proto = core.Proto(0, {});
  core.Func("vfs_read", proto);
  core.Func("twice", proto);
  testing::BtfBuilder module = testing::BtfBuilder::SplitOf(core);
  module.Func("a0", proto);
  module.Func("twice", proto);
  testing::FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, kSymbols)
      .WriteBtf("", core.Build())
      .WriteBtf("a", module.Build())
      .WriteBtf("b", "damaged");
  const SymbolIndex index = *SymbolIndex::FromKernel(kernel.files());
  return *index.WithKernelBtf(kernel.files());
}

const std::string& GoodFile() {
  static const std::string file = [] {
    const SymbolIndex index = GoodIndex();
    const std::string path = "/tmp/fuzz_index." + std::to_string(getpid());
    FuzzCheck(index.Save(path).ok(), "an index is saved");
    std::string bytes;
    std::FILE* const f = std::fopen(path.c_str(), "rb");
    for (int c; (c = std::fgetc(f)) != EOF;) bytes += static_cast<char>(c);
    std::fclose(f);
    unlink(path.c_str());
    return bytes;
  }();
  return file;
}

void Change(std::string_view changes, std::string* bytes) {
  for (; changes.size() >= 3 && !bytes->empty(); changes.remove_prefix(3)) {
    const auto at = static_cast<size_t>(static_cast<uint8_t>(changes[0]) << 8 |
                                        static_cast<uint8_t>(changes[1]));
    (*bytes)[at % bytes->size()] = changes[2];
  }
}

std::string ChangeSections(std::string_view changes) {
  const absl::StatusOr<Container> good = Container::Parse(GoodFile());
  std::map<SectionKind, std::string> sections;
  for (const auto& [kind, bytes] : good->sections()) {
    sections[kind] = std::string(bytes);
  }
  for (size_t i = 0; !changes.empty(); ++i) {
    auto at = sections.begin();
    std::advance(at, static_cast<uint8_t>(changes[0]) % sections.size());
    Change(changes.substr(1, 3), &at->second);
    changes.remove_prefix(std::min<size_t>(4, changes.size()));
  }
  Sections views;
  for (const auto& [kind, bytes] : sections) views[kind] = bytes;
  return PackContainer(views);
}

void UseAll(const SymbolIndex& index) {
  for (const char* name :
       {"vfs_read", "__pfx_vfs_read", "twice", "absent",
        "__ksymtab_cpu_debug_store", "b1", "\xc3\xa9_is_escaped_\xff"}) {
    const AddressLookup single = index.FindAddress(name);
    AddressLookup batch;
    const std::string_view view = name;
    index.FindAddresses({&view, 1}, {&batch, 1});
    FuzzCheck(single.state == batch.state && single.addr == batch.addr,
              "a batch gives what single look-ups give", name);
    (void)index.Find(name).ok();
  }
  for (uint64_t addr : {0x1001ull, 0xffffffff81000018ull, 0xffffffff81000021ull,
                        0xffffffff81f00003ull, 0xffffffffc0001045ull, ~0ull}) {
    (void)index.Symbolize(addr).ok();
  }
  (void)index.ForEach([](const IndexSymbolView&) { return true; }).ok();
  for (uint32_t id = 0; id < 8; ++id) {
    for (const char* module : {"", "a", "b"}) {
      (void)index.FindBtf(module, id).ok();
    }
  }
  index.ModulesWithBtf();
  (void)index.Verify().ok();
}

}  // namespace

std::string MakeFuzzInput(std::mt19937* rng) {
  std::string input(1, static_cast<char>((*rng)()));
  for (uint32_t cnt = (*rng)() % 40; cnt > 0; --cnt) {
    input += static_cast<char>((*rng)() % 3 == 0 ? (*rng)() : (*rng)() % 4);
  }
  return input;
}

}  // namespace ksweep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = ksweep::FuzzText(data, size);
  const bool fit = !input.empty() && input[0] & 1;
  input.remove_prefix(input.empty() ? 0 : 1);
  std::string file = ksweep::GoodFile();
  if (fit) {
    file = ksweep::ChangeSections(input);
  } else {
    ksweep::Change(input, &file);
  }
  const ksweep::MemFile mapped(file);
  ksweep::OpenOptions options;
  options.relocation = ksweep::Relocation::kAsBuilt;
  const absl::StatusOr<ksweep::SymbolIndex> index =
      ksweep::SymbolIndex::Open(mapped.path(), options);
  if (index.ok()) {
    ksweep::UseAll(*index);
  } else {
    ksweep::FuzzCheck(absl::IsDataLoss(index.status()) ||
                          absl::IsInvalidArgument(index.status()),
                      "errors have one of the codes",
                      index.status().ToString());
  }
  return 0;
}
