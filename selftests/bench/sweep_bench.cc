// How much time and memory the sweep adds to only reading kallsyms, beside
// other ways to the same answer.
//
//   sweep_bench                        the dumps and the running kernel
//   sweep_bench --only=live,names      words for sources: dumps, live, the name
//                                      of a dump; for questions: names, globs,
//                                      memory, a number of names, a glob
//   sweep_bench --file=PATH --reps=51
//   sweep_bench --count-only=ksweep --names=10000 --only=linux-7.3.4
//                                      runs one way once, for callgrind_gate
//
// All ways of a table run interleaved; ratios are those of one repetition, and
// the median of them is printed. Exit code 1 if answers differ, not if a target
// is missed: the machine may be busy.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "selftests/bench/measure.h"
#include "selftests/bench/report.h"
#include "selftests/bench/ways.h"
#include "selftests/bench/workload.h"

namespace ksweep::bench {

// callgrind_gate counts what happens in here. Not in the unnamed namespace, so
// that it has a name to be found by.
__attribute__((noinline)) void CountedRun(const Way& way) { way.run(nullptr); }

namespace {

constexpr uint32_t kNameCnts[] = {1, 100, 10000, kMostNames};

struct Flags {
  int reps = 21;
  std::vector<std::string> sources;    // of --only; empty: all
  std::vector<std::string> questions;  // of --only; empty: all
  std::string file;
  bool json = false;
  std::string count_only;
  uint32_t names = 10000;
};

[[noreturn]] void Usage() {
  std::fprintf(stderr,
               "usage: sweep_bench [--reps=N] [--only=WORD,...] [--file=PATH] "
               "[--json]\n"
               "                   [--count-only=WAY] [--names=N]\n"
               "words: dumps, live, linux-*; names, globs, memory, 1, 100, "
               "10000, 64000\n");
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

void SetOnly(const std::string& words, Flags* flags) {
  const std::vector<std::string> list = absl::StrSplit(words, ',');
  for (const std::string& word : list) {
    const bool source =
        word == "dumps" || word == "live" || word.compare(0, 6, "linux-") == 0;
    (source ? flags->sources : flags->questions).push_back(word);
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
      flags.names = std::min(NumberOrUsage<uint32_t>(value), kMostNames);
    } else if (flag == "--only") {
      SetOnly(value, &flags);
    } else if (flag == "--file") {
      flags.file = value;
    } else if (flag == "--count-only") {
      flags.count_only = value;
    } else {
      Usage();
    }
  }
  return flags;
}

bool IsIn(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Whether --only leaves in what one of `a` and `b` names.
bool Allows(const std::vector<std::string>& words, const std::string& a,
            const std::string& b) {
  return words.empty() || IsIn(words, a) || IsIn(words, b);
}

std::vector<Source> SourcesFor(const Flags& flags) {
  std::vector<Source> sources;
  if (!flags.file.empty()) {
    sources.push_back(FileSource(flags.file));
    return sources;
  }
  for (const std::string& name : DumpNames()) {
    if (Allows(flags.sources, "dumps", name)) {
      sources.push_back(DumpSource(name));
    }
  }
  if (Allows(flags.sources, "live", "live")) sources.push_back(LiveSource());
  return sources;
}

Question NamesQuestion(const Source& source,
                       const std::vector<std::string>& names, uint32_t cnt) {
  Question question;
  question.source = &source;
  question.label = absl::StrFormat("%d name%s", cnt, cnt == 1 ? "" : "s");
  question.wanted.assign(names.begin(), names.begin() + cnt);
  question.requests = ExactRequests(question.wanted);
  return question;
}

Question GlobsQuestion(const Source& source, std::string label,
                       std::vector<std::string> globs) {
  Question question;
  question.source = &source;
  question.label = std::move(label);
  question.wanted = std::move(globs);
  question.requests = GlobRequests(question.wanted);
  question.globs = true;
  return question;
}

std::vector<Question> QuestionsFor(const Source& source, const Flags& flags) {
  std::vector<Question> questions;
  const std::vector<std::string> names = DrawNames(source);
  for (uint32_t cnt : kNameCnts) {
    if (Allows(flags.questions, "names", absl::StrFormat("%d", cnt))) {
      questions.push_back(NamesQuestion(source, names, cnt));
    }
  }
  for (const char* glob : {"*", "tcp_*"}) {
    if (Allows(flags.questions, "globs", glob)) {
      questions.push_back(GlobsQuestion(source, glob, {glob}));
    }
  }
  for (uint32_t cnt : {100u, 1000u}) {
    if (Allows(flags.questions, "globs", "globs")) {
      questions.push_back(GlobsQuestion(
          source, absl::StrFormat("%d globs", cnt), DrawGlobs(source, cnt)));
    }
  }
  return questions;
}

// Before anything is timed, all ways have to agree.
bool SameAnswers(const std::vector<Way>& ways, Cell* cell) {
  std::vector<Found> first;
  bool has_first = false;
  bool same = true;
  for (const Way& way : ways) {
    if (!way.answers) continue;
    std::vector<Found> answer;
    way.run(&answer);
    Normalize(&answer);
    if (!has_first) {
      first = std::move(answer);
      has_first = true;
      continue;
    }
    if (!SameAnswer(first, answer)) {
      std::fprintf(stderr, "%s: '%s' finds %zu, ksweep %zu\n",
                   cell->label.c_str(), way.label.c_str(), answer.size(),
                   first.size());
      same = false;
    }
  }
  cell->answer_cnt = first.size();
  return same;
}

Cell RunQuestion(const Question& question, int reps) {
  Cell cell;
  cell.label = question.label;
  if (!question.globs) {
    cell.names = static_cast<uint32_t>(question.wanted.size());
    for (const std::string& name : question.wanted) {
      cell.name_bytes += name.size();
    }
  }
  const std::vector<Way> ways = WaysFor(question);
  cell.same_answers = SameAnswers(ways, &cell);
  cell.answer_bytes = AnswerBytes(question);
  cell.figures = Measure(ways, question.source->lines, reps);
  cell.targets = TargetsFor(cell, question.source->live);
  return cell;
}

SourceReport RunSource(const Source& source, const Flags& flags) {
  SourceReport report;
  report.label = source.label;
  report.lines = source.lines;
  report.live = source.live;
  for (const Question& question : QuestionsFor(source, flags)) {
    report.cells.push_back(RunQuestion(question, flags.reps));
    if (!flags.json) {
      std::fputs(FormatCell(report.cells.back(), report).c_str(), stdout);
      std::fflush(stdout);
    }
  }
  report.targets = TargetsFor(report.cells);
  return report;
}

int64_t PeakFor(const Source& source, const std::vector<std::string>& names) {
  const Question question = NamesQuestion(source, names, kMostNames);
  for (const Figures& figures :
       Measure(WaysFor(question), source.lines, /*reps=*/1)) {
    if (figures.role == Way::Role::kKsweep) return figures.peak_bytes;
  }
  return 0;
}

// The same requests to a text, and to one with ten times the symbols and no
// more hits.
Target MemoryTarget(const Source& source) {
  constexpr int kTimes = 10;
  const std::vector<std::string> names = DrawNames(source);
  const Source once = TextSource("once", MoreSymbols(source, 1));
  const Source more = TextSource("ten times", MoreSymbols(source, kTimes));
  const int64_t small = PeakFor(once, names);
  const int64_t large = PeakFor(more, names);
  return {absl::StrFormat("%s, %d names: peak heap %d B for %d symbols, %d B "
                          "for %d",
                          source.label, kMostNames, small, once.lines, large,
                          more.lines),
          static_cast<double>(large) / static_cast<double>(small), 1.0, 0, ""};
}

int CountOnly(const Flags& flags) {
  const std::vector<Source> sources = SourcesFor(flags);
  if (sources.size() != 1) Usage();
  const Question question =
      NamesQuestion(sources[0], DrawNames(sources[0]), flags.names);
  for (const Way& way : WaysFor(question)) {
    if (way.label.find(flags.count_only) == std::string::npos) continue;
    CountedRun(way);
    std::printf("%llu\n", static_cast<unsigned long long>(sources[0].lines));
    return 0;
  }
  Usage();
}

int Run(const Flags& flags) {
  if (!flags.count_only.empty()) return CountOnly(flags);
  std::vector<SourceReport> reports;
  std::vector<Target> memory;
  bool same = true;
  for (const Source& source : SourcesFor(flags)) {
    reports.push_back(RunSource(source, flags));
    for (const Cell& cell : reports.back().cells) same &= cell.same_answers;
    std::vector<Target> targets = reports.back().targets;
    if (Allows(flags.questions, "memory", "memory")) {
      memory.push_back(MemoryTarget(source));
      targets.push_back(memory.back());
    }
    if (flags.json) continue;
    for (const Target& target : targets) {
      std::fputs(FormatTarget(target).c_str(), stdout);
    }
    std::printf("\n");
  }
  if (flags.json) std::fputs(ToJson(reports, memory).c_str(), stdout);
  return same ? 0 : 1;
}

}  // namespace
}  // namespace ksweep::bench

int main(int argc, char** argv) {
  return ksweep::bench::Run(ksweep::bench::ParseFlags(argc, argv));
}
