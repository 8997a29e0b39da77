#include "lib/source/line_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ksweep/status.h"
#include "lib/base/unique_fd.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::IsEmpty;

using Lines = std::vector<std::string>;

// The obvious way, for comparison.
Lines Split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A piece, split.
struct Batch {
  std::vector<std::string_view> lines;
  bool is_last = false;

  uint32_t cnt() const { return static_cast<uint32_t>(lines.size()); }
};

// ReadText(), counted in lines.
absl::Status ReadBatches(ListFile* file,
                         absl::FunctionRef<uint32_t(const Batch&)> consume,
                         const bool* stop) {
  return ReadText(
      file,
      [consume](const TextPiece& piece) {
        Batch batch;
        batch.is_last = piece.is_last;
        for (std::string_view rest = piece.text; !rest.empty();) {
          const size_t end = rest.find('\n');
          EXPECT_NE(end, std::string_view::npos);
          batch.lines.push_back(rest.substr(0, end));
          rest.remove_prefix(end + 1);
        }
        // These can be read.
        volatile char sum = 0;
        for (size_t i = 0; i < TextPiece::kReadableBehind; ++i) {
          sum = sum ^ (piece.text.data() + piece.text.size())[i];
        }
        const uint32_t done = consume(batch);
        size_t bytes = 0;
        for (uint32_t i = 0; i < done; ++i) bytes += batch.lines[i].size() + 1;
        return bytes;
      },
      stop);
}

// How many lines of a batch the consumer is done with.
using Appetite = uint32_t (*)(uint32_t cnt, std::mt19937* rng);

uint32_t All(uint32_t cnt, std::mt19937*) { return cnt; }
uint32_t Some(uint32_t cnt, std::mt19937* rng) { return (*rng)() % (cnt + 1); }
uint32_t Most(uint32_t cnt, std::mt19937* rng) {
  return cnt - (*rng)() % std::min(cnt, 3u);
}
uint32_t AllButOne(uint32_t cnt, std::mt19937*) { return cnt - 1; }
uint32_t Few(uint32_t cnt, std::mt19937* rng) {
  return (*rng)() % std::min(cnt, 4u);
}
uint32_t None(uint32_t, std::mt19937*) { return 0; }

constexpr Appetite kAppetites[] = {All, Some, Most, AllButOne, Few, None};

// Reads all of `file` and gives back the lines; `appetite` decides how many at
// a time.
Lines ReadAll(ListFile* file, Appetite appetite, std::mt19937* rng) {
  Lines lines;
  const bool stop = false;
  bool last_seen = false;
  const absl::Status status = ReadBatches(
      file,
      [&](const Batch& batch) {
        EXPECT_GT(batch.cnt(), 0u);
        EXPECT_FALSE(last_seen);
        last_seen = batch.is_last;
        const uint32_t done =
            batch.is_last ? batch.cnt() : appetite(batch.cnt(), rng);
        for (uint32_t i = 0; i < done; ++i) {
          lines.emplace_back(batch.lines[i]);
        }
        return done;
      },
      &stop);
  EXPECT_EQ(status, absl::OkStatus());
  return lines;
}

// Opens the file behind a descriptor of this process as kallsyms.
ListFile OpenAgain(const UniqueFd& fd) {
  KernelFiles files;
  files.Override(KernelFile::kKallsyms,
                 "/proc/self/fd/" + std::to_string(fd.get()));
  absl::StatusOr<ListFile> file = ListFile::Open(files, KernelFile::kKallsyms);
  return *std::move(file);
}

// A file with `text`, in memory.
ListFile FileOf(std::string_view text) {
  const UniqueFd fd(memfd_create("lines", MFD_CLOEXEC));
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t put = write(fd.get(), rest.data(), rest.size());
    if (put < 0) abort();
    rest.remove_prefix(static_cast<size_t>(put));
  }
  return OpenAgain(fd);
}

Lines LinesOf(std::string_view text, Appetite appetite = All) {
  std::mt19937 rng(9);
  ListFile file = FileOf(text);
  return ReadAll(&file, appetite, &rng);
}

// Gives `text` to a reader a few bytes at a time, as the kernel does.
class SlowFile {
 public:
  SlowFile(std::string text, size_t max_chunk) : SlowFile(MakePipe()) {
    writer_ = std::thread([this, text = std::move(text), max_chunk] {
      std::mt19937 rng(10);
      for (size_t at = 0; at < text.size();) {
        const size_t size =
            std::min<size_t>(1 + rng() % max_chunk, text.size() - at);
        if (write(in_.get(), text.data() + at, size) < 0) abort();
        at += size;
        // Else one read would get what several writes gave.
        if (rng() % 8 == 0) std::this_thread::yield();
      }
      in_ = UniqueFd();
    });
  }
  ~SlowFile() { writer_.join(); }
  ListFile* get() { return &file_; }

 private:
  struct Pipe {
    UniqueFd out, in;
  };
  static Pipe MakePipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) abort();
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
  explicit SlowFile(Pipe pipe)
      : in_(std::move(pipe.in)), file_(OpenAgain(pipe.out)) {}

  UniqueFd in_;
  ListFile file_;
  std::thread writer_;
};

std::string RandomFile(std::mt19937* rng) {
  constexpr std::string_view kAlphabet("abcd..\t\xff\0", 9);
  const size_t line_lens[] = {3, 40, 300, 20000, 100000};
  const size_t max_len = line_lens[(*rng)() % std::size(line_lens)];
  const size_t size = (*rng)() % 300000;
  std::string text;
  while (text.size() < size) {
    for (size_t len = (*rng)() % (max_len + 1); len > 0; --len) {
      text += kAlphabet[(*rng)() % kAlphabet.size()];
    }
    text += '\n';
  }
  if ((*rng)() % 2 == 0 && !text.empty()) text.pop_back();
  return text;
}

TEST(ReadText, EmptyFileHasNoLine) { EXPECT_THAT(LinesOf(""), IsEmpty()); }

struct SplitCase {
  std::string_view text;
  Lines want;
};

TEST(ReadText, Cases) {
  const SplitCase kCases[] = {
      {"a\n", {"a"}},
      {"a", {"a"}},
      {"\n", {""}},
      {"\n\n\n", {"", "", ""}},
      {"\na", {"", "a"}},
      {"a\n\n", {"a", ""}},
      {"a\nb", {"a", "b"}},
      {"a\r\nb", {"a\r", "b"}},
      {" a \n", {" a "}},
      {"a\t[m]\n", {"a\t[m]"}},
      {"a.b\n..\n", {"a.b", ".."}},
      {std::string_view("a\0b\n\0", 5), {{"a\0b", 3}, {"\0", 1}}},
      {"\xff\xfe\n\x80", {"\xff\xfe", "\x80"}},
  };
  for (const SplitCase& c : kCases) {
    EXPECT_EQ(LinesOf(c.text), c.want) << c.text;
    EXPECT_EQ(Split(c.text), c.want) << c.text;
  }
}

// The other form has the same lines.
TEST(ReadLines, VisitsEachLine) {
  std::mt19937 rng(21);
  for (int round = 0; round < 20; ++round) {
    const std::string text = RandomFile(&rng);
    ListFile file = FileOf(text);
    Lines lines;
    const bool stop = false;
    ASSERT_EQ(ReadLines(
                  &file,
                  [&lines](std::string_view line) { lines.emplace_back(line); },
                  &stop),
              absl::OkStatus());
    ASSERT_EQ(lines, Split(text)) << round;
  }
}

TEST(ReadLines, StopsBetweenLines) {
  ListFile file = FileOf("a\nb\nc\n");
  bool stop = false;
  Lines lines;
  ASSERT_EQ(ReadLines(
                &file,
                [&](std::string_view line) {
                  lines.emplace_back(line);
                  stop = line == "b";
                },
                &stop),
            absl::OkStatus());
  EXPECT_THAT(lines, ElementsAre("a", "b"));
}

TEST(ReadText, FilesOfEverySize) {
  std::string text;
  while (text.size() < 140000) {
    text += "line." + std::to_string(text.size()) + "\tx\n";
  }
  std::vector<size_t> sizes;
  for (size_t size = 0; size < 200; ++size) sizes.push_back(size);
  for (size_t around : {32768, 65536, 98304, 131072}) {
    for (size_t size = around - 70; size < around + 70; size += 3) {
      sizes.push_back(size);
    }
  }
  for (size_t size : sizes) {
    const std::string_view part(text.data(), size);
    ASSERT_EQ(LinesOf(part), Split(part)) << size;
  }
}

TEST(ReadText, LinesOfEveryLength) {
  std::string text;
  for (size_t len :
       {0,     1,     62,     63,     64,      65,     127,   128,
        4095,  4096,  4097,   32766,  32767,   32768,  65534, 65535,
        65536, 65537, 131071, 131072, 1048576, 3000001}) {
    text += std::string(len, 'a' + static_cast<char>(len % 26)) + "\nshort\n";
  }
  EXPECT_EQ(LinesOf(text), Split(text));
  text.pop_back();
  EXPECT_EQ(LinesOf(text), Split(text));
  EXPECT_EQ(LinesOf(text, AllButOne), Split(text));
}

TEST(ReadText, OneLongLineWithoutAnEnd) {
  for (size_t len : {32767, 32768, 65535, 65536, 65537, 2000000}) {
    EXPECT_THAT(LinesOf(std::string(len, 'x')),
                ElementsAre(std::string(len, 'x')));
  }
}

TEST(ReadText, OnlyLineEnds) {
  for (size_t cnt : {1, 63, 64, 65, 32768, 65535, 65536, 200000}) {
    EXPECT_EQ(LinesOf(std::string(cnt, '\n')), Lines(cnt)) << cnt;
  }
}

TEST(ReadText, LinesNotDoneComeAgain) {
  std::string text;
  for (int i = 0; i < 30000; ++i) {
    text += std::to_string(i * i) + (i % 5 == 0 ? ".x\n" : "\n");
  }
  for (Appetite appetite : kAppetites) {
    EXPECT_EQ(LinesOf(text, appetite), Split(text));
  }
}

// Of the last batch all are taken as done, whatever the consumer says.
TEST(ReadText, TheLastBatchComesOnce) {
  ListFile file = FileOf("a\nb\n");
  const bool stop = false;
  int batches = 0;
  ASSERT_EQ(ReadBatches(
                &file,
                [&batches](const Batch& batch) {
                  EXPECT_TRUE(batch.is_last);
                  ++batches;
                  return 0u;
                },
                &stop),
            absl::OkStatus());
  EXPECT_EQ(batches, 1);
}

TEST(ReadText, RandomFilesAsSplitting) {
  std::mt19937 rng(12);
  for (int round = 0; round < 60; ++round) {
    const std::string text = RandomFile(&rng);
    const Appetite appetite = kAppetites[rng() % std::size(kAppetites)];
    ListFile file = FileOf(text);
    ASSERT_EQ(ReadAll(&file, appetite, &rng), Split(text)) << round;
  }
}

TEST(ReadText, SmallReads) {
  std::mt19937 rng(13);
  for (size_t max_chunk : {1, 7, 100, 4096}) {
    std::string text = RandomFile(&rng);
    if (max_chunk == 1) text.resize(std::min<size_t>(text.size(), 20000));
    SlowFile file(text, max_chunk);
    const Lines lines = ReadAll(file.get(), Some, &rng);
    ASSERT_EQ(lines, Split(text)) << max_chunk;
    EXPECT_EQ(file.get()->stats().bytes, text.size());
  }
}

TEST(ReadText, StopsBeforeItBegins) {
  ListFile file = FileOf("a\nb\n");
  const bool stop = true;
  EXPECT_EQ(ReadBatches(
                &file,
                [](const Batch& batch) {
                  ADD_FAILURE() << "not to be called";
                  return batch.cnt();
                },
                &stop),
            absl::OkStatus());
  EXPECT_EQ(file.stats().reads, 0u);
}

TEST(ReadText, StopsWithoutReadingOn) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "some line\n";
  ListFile file = FileOf(text);
  bool stop = false;
  int batches = 0;
  EXPECT_EQ(ReadBatches(
                &file,
                [&](const Batch& batch) {
                  stop = ++batches == 3;
                  return batch.cnt();
                },
                &stop),
            absl::OkStatus());
  EXPECT_EQ(batches, 3);
  EXPECT_LT(file.stats().bytes, text.size() / 2);
}

TEST(ReadText, ReadErrors) {
  const FakeKernel kernel;
  std::filesystem::create_directories(kernel.Path(KernelFile::kKallsyms));
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  const bool stop = false;
  const absl::Status status = ReadBatches(
      &*file,
      [](const Batch& batch) {
        ADD_FAILURE() << "not to be called";
        return batch.cnt();
      },
      &stop);
  EXPECT_EQ(ErrnoOf(status), EISDIR) << status;
  EXPECT_EQ(
      std::string(status.message()),
      "cannot read " + kernel.Path(KernelFile::kKallsyms) + ": Is a directory");
}

TEST(ReadText, AgainAfterRewind) {
  ListFile file = FileOf("a\nb\n");
  std::mt19937 rng(14);
  EXPECT_THAT(ReadAll(&file, All, &rng), ElementsAre("a", "b"));
  EXPECT_THAT(ReadAll(&file, All, &rng), IsEmpty());
  ASSERT_EQ(file.Rewind(), absl::OkStatus());
  EXPECT_THAT(ReadAll(&file, All, &rng), ElementsAre("a", "b"));
}

TEST(ReadText, RealKernels) {
  const std::string text =
      testing::Gunzip(testing::DataFolder() + "/linux-7.3.4/proc/kallsyms.gz");
  EXPECT_EQ(LinesOf(text, Most), Split(text));
}

TEST(ReadText, BugCase08_FirstAndLastLineCount) {
  for (const char* text : {
           "ffffffff81000000 T first\nffffffff81000010 t last\n",
           "ffffffff81000000 T first\nffffffff81000010 t last",
       }) {
    EXPECT_THAT(LinesOf(text), ElementsAre("ffffffff81000000 T first",
                                           "ffffffff81000010 t last"));
  }
  EXPECT_THAT(LinesOf(""), IsEmpty());
}

TEST(ReadText, BugCase10_LongLinesAreWhole) {
  for (size_t len : {127, 128, 255, 256, 511, 512, 5000}) {
    const std::string name(len, 'n');
    const Lines want = {"ffffffffa0000000 t " + name + "a\t[drvx]",
                        "ffffffffa0000010 t " + name + "b\t[drvx]"};
    EXPECT_EQ(LinesOf(want[0] + "\n" + want[1] + "\n"), want);
  }
}

TEST(ReadText, BugCase74_OnePass) {
  FakeKernel kernel;
  std::string text;
  for (int i = 0; i < 50000; ++i)
    text += "some line " + std::to_string(i) + "\n";
  kernel.Write(KernelFile::kKallsyms, text);
  const std::string path = kernel.Path(KernelFile::kKallsyms);
  testing::OpenCounter counter;
  counter.Watch(path);
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  std::mt19937 rng(15);
  EXPECT_EQ(ReadAll(&*file, Some, &rng), Split(text));
  EXPECT_EQ(counter.Opens(path), 1);
  EXPECT_EQ(file->stats().opens, 1u);
  EXPECT_EQ(file->stats().passes, 1u);
  EXPECT_EQ(file->stats().bytes, text.size());
}

}  // namespace
}  // namespace ksweep
