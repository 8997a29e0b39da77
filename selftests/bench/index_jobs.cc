#include "selftests/bench/index_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/resolve/sweep_plan.h"
#include "selftests/bench/reference/btf_addrs.h"
#include "selftests/bench/ways.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep::bench {
namespace {

// So that no work is found to be of no use.
void Use(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

// --- names to addresses ---

// A way to answer a list of names.
struct NameWay {
  std::string label;
  std::function<void(absl::Span<const std::string_view>, uint64_t*)> find;
  // Slow ones are asked only the first so many.
  size_t most = ~size_t{0};
};

void FindOneByOne(const SymbolIndex& index,
                  absl::Span<const std::string_view> names, uint64_t* addrs) {
  for (size_t i = 0; i < names.size(); ++i) {
    const AddressLookup found = index.FindAddress(names[i]);
    addrs[i] = found.found() ? found.addr : kNoAddr;
  }
}

void FindInBatches(const SymbolIndex& index, size_t batch,
                   absl::Span<const std::string_view> names, uint64_t* addrs) {
  std::vector<AddressLookup> found(std::min(batch, names.size()));
  for (size_t done = 0; done < names.size(); done += batch) {
    const auto part = names.subspan(done, batch);
    index.FindAddresses(part, absl::MakeSpan(found).first(part.size()));
    for (size_t i = 0; i < part.size(); ++i) {
      addrs[done + i] = found[i].found() ? found[i].addr : kNoAddr;
    }
  }
}

NameWay TableWay(std::string label, const NameTable& table, size_t most) {
  return {std::move(label),
          [&table](absl::Span<const std::string_view> names, uint64_t* addrs) {
            table.Find(names, addrs);
          },
          most};
}

NameWay BatchWay(const Subject& subject, std::string label, size_t batch) {
  return {std::move(label),
          [&subject, batch](absl::Span<const std::string_view> names,
                            uint64_t* addrs) {
            FindInBatches(subject.index, batch, names, addrs);
          }};
}

std::vector<NameWay> NameWays(const Subject& subject) {
  constexpr size_t kSlow = 10000;
  constexpr size_t kVerySlow = 4;
  std::vector<NameWay> ways;
  for (const KernelTableOf& kernel : subject.kernel) {
    const bool slow = kernel.form.names == KernelNames::kEvery256;
    ways.push_back(
        TableWay(kernel.label, *kernel.table, slow ? kSlow : ~size_t{0}));
  }
  ways.push_back(TableWay("linear scan", *subject.linear, kVerySlow));
  ways.push_back(TableWay("tree of all names", *subject.tree, ~size_t{0}));
  ways.push_back({kOurs, [&subject](absl::Span<const std::string_view> names,
                                    uint64_t* addrs) {
                    FindOneByOne(subject.index, names, addrs);
                  }});
  return ways;
}

constexpr size_t kBatches[] = {50, 1000, 64000};

std::string BatchLabel(size_t batch) { return absl::StrFormat("by %d", batch); }

// Questions are repeated so often that each takes some 10,000 lookups.
Job NameJob(const NameWay& way, const NameQuestion& question) {
  constexpr size_t kFewest = 10000;
  const size_t cnt = std::min(question.views.size(), way.most);
  const size_t most = std::min(kFewest, way.most);
  const size_t times = std::max<size_t>(1, most / cnt);
  const auto addrs = std::make_shared<std::vector<uint64_t>>(cnt);
  return {
      way.label, cnt * times, [&question, find = way.find, cnt, times, addrs] {
        for (size_t i = 0; i < times; ++i) {
          find(absl::MakeConstSpan(question.views).first(cnt), addrs->data());
          Use(addrs->back());
        }
      }};
}

bool CheckNames(const NameWay& way, const NameQuestion& question,
                const char* what) {
  const size_t cnt = std::min(question.views.size(), way.most);
  std::vector<uint64_t> addrs(cnt);
  way.find(absl::MakeConstSpan(question.views).first(cnt), addrs.data());
  size_t wrong = 0;
  for (size_t i = 0; i < cnt; ++i) wrong += addrs[i] != question.addrs[i];
  if (wrong == 0) return true;
  std::fprintf(stderr, "%s, %s: %zu of %zu answers are wrong\n",
               way.label.c_str(), what, wrong, cnt);
  return false;
}

// --- addresses to names ---

// Answers are the offset in the symbol, and a byte of the name.
struct AddrWay {
  std::string label;
  std::function<void(absl::Span<const uint64_t>, uint64_t*)> symbolize;
  std::function<uint64_t()> iterate;  // returns the count
};

AddrWay KernelAddrWay(const KernelTableOf& kernel) {
  const KernelNameTable& table = *kernel.table;
  return {kernel.label,
          [&table](absl::Span<const uint64_t> addrs, uint64_t* offsets) {
            table.Symbolize(addrs, [&offsets](const Place& place) {
              *offsets++ = place.offset;
              Use(place.name.size());
            });
          },
          [&table] {
            uint64_t cnt = 0;
            table.ForEach([&cnt](uint64_t addr, char, std::string_view name) {
              Use(addr + name.size());
              ++cnt;
            });
            return cnt;
          }};
}

AddrWay OurAddrWay(const Subject& subject) {
  const SymbolIndex& index = subject.index;
  return {kOurs,
          [&index](absl::Span<const uint64_t> addrs, uint64_t* offsets) {
            SymbolizedName symbol;
            for (uint64_t addr : addrs) {
              const LookupState state = index.SymbolizeFirst(addr, &symbol);
              *offsets++ =
                  state == LookupState::kFound ? symbol.offset : kNoAddr;
              Use(symbol.name.size());
            }
          },
          [&index] {
            uint64_t cnt = 0;
            OkOrDie(index.ForEach([&cnt](const IndexSymbolView& symbol) {
              Use(symbol.addr + symbol.name.size());
              ++cnt;
              return true;
            }));
            return cnt;
          }};
}

std::vector<AddrWay> AddrWays(const Subject& subject) {
  std::vector<AddrWay> ways;
  for (const KernelTableOf& kernel : subject.kernel) {
    ways.push_back(KernelAddrWay(kernel));
  }
  ways.push_back(OurAddrWay(subject));
  return ways;
}

bool CheckPlaces(const AddrWay& way, const Subject& subject) {
  std::vector<uint64_t> offsets(subject.places.addrs.size());
  way.symbolize(subject.places.addrs, offsets.data());
  const bool right = offsets == subject.places.offsets;
  const bool all = way.iterate() == subject.symbols.size();
  if (!right || !all) {
    std::fprintf(stderr, "%s: addresses %s, symbols %s\n", way.label.c_str(),
                 right ? "right" : "wrong", all ? "complete" : "missing");
  }
  return right && all;
}

// --- measuring ---

// Jobs and the questions they answer, in the same order.
class Measured {
 public:
  void Add(std::string question, Job job) {
    questions_.push_back(std::move(question));
    jobs_.push_back(std::move(job));
  }

  // `base` is the way the factors are to; `base_question`, if there is one, the
  // question that it is asked for `question`s it has no job for.
  TimeTable Run(std::string title, const std::string& base,
                const std::string& base_question, int reps) {
    TimeTable table;
    table.title = std::move(title);
    table.base = base;
    const std::vector<Times> times = Interleave(jobs_, reps);
    for (size_t i = 0; i < jobs_.size(); ++i) {
      TimeCell cell;
      cell.way = jobs_[i].label;
      cell.question = questions_[i];
      cell.times = times[i];
      cell.ns = Median(times[i]);
      cell.min_ns = *std::min_element(times[i].begin(), times[i].end());
      table.cells.push_back(std::move(cell));
    }
    for (TimeCell& cell : table.cells) {
      const TimeCell* to = table.Find(base, cell.question);
      if (to == nullptr) to = table.Find(base, base_question);
      if (to != nullptr) cell.factor = MedianRatio(to->times, cell.times);
    }
    return table;
  }

 private:
  std::vector<std::string> questions_;
  std::vector<Job> jobs_;
};

// A file that is removed at the end.
class TempFile {
 public:
  TempFile()
      : path_(std::filesystem::temp_directory_path() /
              absl::StrFormat("index_bench.%d", getpid())) {}
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

OpenOptions AsBuilt() {
  OpenOptions options;
  options.relocation = Relocation::kAsBuilt;
  return options;
}

Job Once(std::string label, std::function<void()> run) {
  return {std::move(label), 1, std::move(run)};
}

std::string BtfOf(const Source& source) {
  const std::string path = source.live
                               ? "/sys/kernel/btf/vmlinux"
                               : testing::DataFolder() + "/" + source.label +
                                     "/sys/kernel/btf/vmlinux.gz";
  if (!std::filesystem::exists(path)) return "";
  return testing::Gunzip(path);  // of plain files it gives what is there
}

}  // namespace

const TimeCell* TimeTable::Find(const std::string& way,
                                const std::string& question) const {
  for (const TimeCell& cell : cells) {
    if (cell.way == way && cell.question == question) return &cell;
  }
  return nullptr;
}

bool CheckAnswers(const Subject& subject) {
  bool right = true;
  std::vector<NameWay> ways = NameWays(subject);
  for (size_t batch : kBatches) {
    ways.push_back(BatchWay(subject, BatchLabel(batch), batch));
  }
  for (const NameWay& way : ways) {
    right &= CheckNames(way, subject.functions, "functions");
    right &= CheckNames(way, subject.absent, "absent names");
    right &= CheckNames(way, subject.pads, "pads");
  }
  for (const AddrWay& way : AddrWays(subject)) {
    right &= CheckPlaces(way, subject);
  }
  return right;
}

TimeTable MeasureLookups(const Subject& subject, int reps) {
  Measured measured;
  for (const NameWay& way : NameWays(subject)) {
    measured.Add("random", NameJob(way, subject.functions));
    measured.Add("hot", NameJob(way, subject.hot));
    measured.Add("absent", NameJob(way, subject.absent));
    if (!subject.pads.views.empty()) {
      measured.Add("__pfx_", NameJob(way, subject.pads));
    }
  }
  for (size_t batch : kBatches) {
    measured.Add(
        BatchLabel(batch),
        NameJob(BatchWay(subject, kOursInBatches, batch), subject.functions));
  }
  return measured.Run("ns a name", subject.Kernel(kKernel16).label, "random",
                      reps);
}

TimeTable MeasureOthers(const Subject& subject, int reps) {
  Measured measured;
  const std::vector<uint64_t>& addrs = subject.places.addrs;
  const auto offsets = std::make_shared<std::vector<uint64_t>>(addrs.size());
  for (const AddrWay& way : AddrWays(subject)) {
    measured.Add("address to name",
                 {way.label, addrs.size(), [&addrs, offsets, way] {
                    way.symbolize(addrs, offsets->data());
                  }});
    measured.Add("symbol in order",
                 {way.label, subject.symbols.size(),
                  [iterate = way.iterate] { Use(iterate()); }});
  }
  return measured.Run("ns an address, ns a symbol",
                      subject.Kernel(kKernel256).label, "", reps);
}

TimeTable MeasureLife(const Subject& subject, int reps) {
  constexpr char kKernelMade[] = "kernel 256:1, made";
  Measured measured;
  const TempFile file;
  const TempFile* const saved = &file;
  OkOrDie(subject.index.Save(file.path()));
  measured.Add("", Once(kKernelMade, [&subject] {
                 const CompressedNames names(subject.symbols);
                 MakeKernelTable(kKernel256, subject.symbols, names);
               }));
  measured.Add("", Once("ksweep, built from text", [&subject] {
                 ValueOrDie(SymbolIndex::FromText(subject.core_text));
               }));
  measured.Add("", Once("ksweep, saved", [&subject, saved] {
                 OkOrDie(subject.index.Save(saved->path()));
               }));
  measured.Add("", Once("ksweep, opened", [saved] {
                 ValueOrDie(SymbolIndex::Open(saved->path(), AsBuilt()));
               }));
  measured.Add("", Once("ksweep, opened and verified", [saved] {
                 OpenOptions options = AsBuilt();
                 options.verify = true;
                 ValueOrDie(SymbolIndex::Open(saved->path(), options));
               }));
  return measured.Run("building and opening", kKernelMade, "", reps);
}

TimeTable MeasureBtf(const Subject& subject, int reps) {
  const std::string btf = BtfOf(*subject.source);
  if (btf.empty()) return {};
  const BtfAddrs addrs(btf, *subject.Kernel(kKernel16).table);
  const SymbolIndex index = ValueOrDie(subject.index.WithBtf(btf));
  Measured measured;
  measured.Add("BTF id", {"address beside BTF", addrs.funcs().size(), [&addrs] {
                            for (uint32_t id : addrs.funcs()) {
                              Use(addrs.Get(id));
                            }
                          }});
  measured.Add("BTF id", {kOurs, addrs.funcs().size(), [&addrs, &index] {
                            for (uint32_t id : addrs.funcs()) {
                              Use(ValueOrDie(index.FindBtf(id)).size());
                            }
                          }});
  return measured.Run(
      absl::StrFormat("ns a BTF id (%d functions; beside BTF %d bytes, ksweep "
                      "%d)",
                      addrs.funcs().size(), addrs.bytes(),
                      index.Stats().btf_bytes),
      "address beside BTF", "", reps);
}

TimeTable MeasureBatch(const Source& live, int reps) {
  constexpr char kSweep[] = "sweep of /proc/kallsyms";
  Question question;
  question.source = &live;
  question.wanted = DrawNames(live);
  question.requests = ExactRequests(question.wanted);
  NameQuestion packed;
  SetNames(question.wanted, &packed);
  const std::vector<std::string_view>& names = packed.views;

  const TempFile file;
  const TempFile* const saved = &file;
  OkOrDie(ValueOrDie(SymbolIndex::FromKernel()).Save(file.path()));
  const SymbolIndex index = ValueOrDie(SymbolIndex::Open(file.path()));
  std::vector<AddressLookup> found(names.size());

  Measured measured;
  for (const Way& way : WaysFor(question)) {
    if (way.role != Way::Role::kKsweep) continue;
    measured.Add("", {kSweep, names.size(), [way] { way.run(nullptr); }});
  }
  measured.Add("", {"open index", names.size(), [&] {
                      index.FindAddresses(names, absl::MakeSpan(found));
                    }});
  measured.Add("", {"index, opened for it", names.size(), [&, saved] {
                      ValueOrDie(SymbolIndex::Open(saved->path()))
                          .FindAddresses(names, absl::MakeSpan(found));
                    }});
  return measured.Run(absl::StrFormat("%d names of the running kernel, ns a "
                                      "name",
                                      names.size()),
                      kSweep, "", reps);
}

Job CountedJob(const Subject& subject, const std::string& way, uint64_t cnt) {
  std::vector<NameWay> ways = NameWays(subject);
  ways.push_back(BatchWay(subject, kOursInBatches, 1000));
  for (NameWay& candidate : ways) {
    if (candidate.label != way) continue;
    candidate.most = cnt;
    return NameJob(candidate, subject.functions);
  }
  std::fprintf(stderr, "there is no way '%s'\n", way.c_str());
  std::exit(2);
}

}  // namespace ksweep::bench
