// The symbol index beside the kernel's own table in several forms, and beside
// simpler ways: bytes, and the time of every kind of question.
//
//   index_bench                        the dumps and the running kernel
//   index_bench --only=live,lookups    words for sources: dumps, live, the name
//                                      of a dump; for tables: bytes, lookups,
//                                      others, btf, life, batch
//   index_bench --reps=21 --json
//   index_bench --count-only='WAY;…' --names=10000 --only=linux-7.3.4
//                                      runs these ways once each, four at
//                                      most, for callgrind_gate
//
// All ways of a table run interleaved, in CPU time of the thread; factors are
// those of one repetition, and the median of them is printed. Exit code 1 if
// answers are wrong, not if a target is missed: the machine may be busy.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "selftests/bench/index_jobs.h"
#include "selftests/bench/index_report.h"
#include "selftests/bench/index_subject.h"
#include "selftests/bench/workload.h"

namespace ksweep::bench {

// callgrind_gate counts what happens in here, by the slot. Not in the unnamed
// namespace, so that they have names to be found by.
template <int kSlot>
__attribute__((noinline)) void CountedLookups(const Job& job) {
  asm volatile("" : : "i"(kSlot));  // or equal functions become one
  job.run();
}

namespace {

struct Flags {
  int reps = 15;
  std::vector<std::string> sources;  // of --only; empty: all
  std::vector<std::string> tables;   // of --only; empty: all
  std::vector<std::string> count_only;
  uint32_t names = 10000;
  bool json = false;
};

[[noreturn]] void Usage() {
  std::fprintf(stderr,
               "usage: index_bench [--reps=N] [--only=WORD,...] [--json]\n"
               "                   [--count-only=WAY;...] [--names=N]\n"
               "words: dumps, live, linux-*; bytes, lookups, others, btf, "
               "life, batch\n");
  std::exit(2);
}

template <typename Int>
Int NumberOrUsage(std::string_view text) {
  Int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 1) Usage();
  return number;
}

bool IsIn(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void SetOnly(const std::string& value, Flags* flags) {
  static const std::vector<std::string> kTables = {"bytes", "lookups", "others",
                                                   "btf",   "life",    "batch"};
  std::vector<std::string> sources = DumpNames();
  sources.insert(sources.end(), {"dumps", "live"});
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(value, ','))) {
    if (IsIn(sources, word)) {
      flags->sources.push_back(word);
    } else if (IsIn(kTables, word)) {
      flags->tables.push_back(word);
    } else {
      Usage();
    }
  }
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const size_t equals = std::min(arg.find('='), arg.size());
    const std::string_view flag = arg.substr(0, equals);
    const std::string value(arg.substr(std::min(equals + 1, arg.size())));
    if (flag == "--json") {
      flags.json = true;
    } else if (flag == "--reps") {
      flags.reps = NumberOrUsage<int>(value);
    } else if (flag == "--names") {
      flags.names = NumberOrUsage<uint32_t>(value);
    } else if (flag == "--only") {
      SetOnly(value, &flags);
    } else if (flag == "--count-only") {
      flags.count_only = absl::StrSplit(value, ';');
    } else {
      Usage();
    }
  }
  return flags;
}

std::vector<Source> SourcesFor(const Flags& flags) {
  std::vector<Source> sources;
  const bool all = flags.sources.empty();
  for (const std::string& name : DumpNames()) {
    if (all || IsIn(flags.sources, "dumps") || IsIn(flags.sources, name)) {
      sources.push_back(DumpSource(name));
    }
  }
  if (all || IsIn(flags.sources, "live")) sources.push_back(LiveSource());
  return sources;
}

void Print(const Flags& flags, const std::string& text) {
  if (flags.json) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string MemoryNote(const Subject& subject) {
  return absl::StrFormat(
      "the index's file has %d bytes; building it from text took at most %d "
      "bytes of heap",
      subject.index.Stats().file_bytes, subject.build_peak_bytes);
}

bool IsAsked(const Flags& flags, const char* table) {
  return flags.tables.empty() || IsIn(flags.tables, table);
}

void Measure(const Subject& subject, const Flags& flags, IndexReport* report) {
  const auto add = [&](const char* name, auto measure) {
    if (!IsAsked(flags, name)) return;
    report->times.push_back(measure(subject, flags.reps));
    Print(flags, FormatTimes(report->times.back()));
  };
  add("lookups", MeasureLookups);
  add("others", MeasureOthers);
  add("btf", MeasureBtf);
  add("life", MeasureLife);
  if (subject.source->live) {
    add("batch", [](const Subject& live, int reps) {
      return MeasureBatch(*live.source, reps);
    });
  }
}

bool RunSource(const Source& source, const Flags& flags, IndexReport* report) {
  const std::unique_ptr<Subject> subject = MakeSubject(source);
  report->label = source.label;
  report->symbols = subject->symbols.size();
  if (IsAsked(flags, "bytes")) {
    report->bytes = BytesOf(*subject);
    report->notes.push_back(MemoryNote(*subject));
  }
  Print(flags, FormatBytes(*report));
  const bool right = CheckAnswers(*subject);
  Measure(*subject, flags, report);
  report->targets = IndexTargets(*report);
  for (const Target& target : report->targets) {
    Print(flags, FormatTarget(target));
  }
  Print(flags, "\n");
  return right;
}

int CountOnly(const Flags& flags) {
  constexpr void (*kRunners[])(const Job&) = {
      CountedLookups<0>, CountedLookups<1>, CountedLookups<2>,
      CountedLookups<3>};
  const std::vector<Source> sources = SourcesFor(flags);
  if (sources.size() != 1 || flags.count_only.size() > std::size(kRunners)) {
    Usage();
  }
  const std::unique_ptr<Subject> subject = MakeSubject(sources[0]);
  for (size_t i = 0; i < flags.count_only.size(); ++i) {
    const Job job = CountedJob(*subject, flags.count_only[i], flags.names);
    kRunners[i](job);
    std::printf("%llu\n", static_cast<unsigned long long>(job.ops));
  }
  return 0;
}

int Run(const Flags& flags) {
  if (!flags.count_only.empty()) return CountOnly(flags);
  std::vector<IndexReport> reports;
  bool right = true;
  for (const Source& source : SourcesFor(flags)) {
    reports.emplace_back();
    right &= RunSource(source, flags, &reports.back());
  }
  if (flags.json) std::fputs(ToJson(reports).c_str(), stdout);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace ksweep::bench

int main(int argc, char** argv) {
  return ksweep::bench::Run(ksweep::bench::ParseFlags(argc, argv));
}
