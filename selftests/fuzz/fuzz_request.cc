// Input: a request, or lines of a request file.

#include <string>
#include <string_view>
#include <vector>

#include "ksweep/request.h"
#include "selftests/fuzz/fuzz_target.h"

namespace ksweep {
namespace {

constexpr std::string_view kWords[] = {
    "vfs_read",
    "tcp_*",
    "nf_?",
    "[a-c]",
    "[!",
    "]",
    "*",
    "?",
    "!",
    ":",
    "@",
    "-",
    "vmlinux:",
    "nf_*:",
    "syscall:",
    "openat",
    "btf:",
    "130001",
    "takes:",
    "sk_buff",
    "@1",
    "0x",
    "0X",
    "0",
    "ffffffff8",
    "1234567",
    "abcdef",
    "#",
    "\n",
    " ",
    "\t",
    "\r\n",
    "\xc3\xa9",
    "\xff",
    ".isra.0",
    "99999999999",
    "btf:nf_tables:7",
    "0xffffffff81234560",
    "!syscall:openat",
};

bool SameRequest(const Request& a, const Request& b) {
  return a.form() == b.form() && a.deny() == b.deny() &&
         a.unique() == b.unique() && a.cookie() == b.cookie() &&
         a.name() == b.name() && a.addr() == b.addr() &&
         a.owner().is_any() == b.owner().is_any() &&
         a.owner().is_core() == b.owner().is_core() &&
         a.owner().module_pattern() == b.owner().module_pattern();
}

void CheckOne(std::string_view text) {
  const absl::StatusOr<Request> request = Request::Parse(text);
  if (!request.ok()) {
    FuzzCheck(absl::IsInvalidArgument(request.status()), "InvalidArgument");
    FuzzCheck(std::string(request.status().message()).find("at position ") !=
                  std::string::npos,
              "the message has the position", text);
    return;
  }
  const std::string written = request->ToString();
  const absl::StatusOr<Request> again = Request::Parse(written);
  FuzzCheck(again.ok(), "what was written can be read", written);
  FuzzCheck(again->ToString() == written, "it is written the same", written);
  FuzzCheck(SameRequest(*request, *again), "it is the same request", written);
}

void CheckFile(std::string_view text) {
  const absl::StatusOr<std::vector<Request>> requests =
      ParseRequests(text, "fuzz");
  if (!requests.ok()) {
    FuzzCheck(absl::IsInvalidArgument(requests.status()), "InvalidArgument");
    FuzzCheck(std::string(requests.status().message()).rfind("fuzz:", 0) == 0,
              "the message has the file", text);
    return;
  }
  std::string written;
  for (const Request& request : *requests) written += request.ToString() + "\n";
  const absl::StatusOr<std::vector<Request>> again =
      ParseRequests(written, "again");
  FuzzCheck(again.ok() && again->size() == requests->size(),
            "what was written can be read", written);
  for (size_t i = 0; i < again->size(); ++i) {
    FuzzCheck(SameRequest((*again)[i], (*requests)[i]),
              "the requests are the same", written);
  }
}

}  // namespace

std::string MakeFuzzInput(std::mt19937* rng) {
  return RandomWords(kWords, (*rng)() % 2 == 0 ? 5 : 60, rng);
}

}  // namespace ksweep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = ksweep::FuzzText(data, size);
  ksweep::CheckOne(text);
  ksweep::CheckFile(text);
  return 0;
}
