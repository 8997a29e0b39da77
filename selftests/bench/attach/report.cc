#include "selftests/bench/attach/report.h"

#include <bpf/libbpf.h>
#include <sys/utsname.h>

#include <cstdio>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"

namespace ksweep::bench {

Report::Report(bool json) : json_(json) {
  utsname name = {};
  uname(&name);
  absl::PrintF(
      json_ ? R"({"kernel": "%s", "libbpf": "%s")" : "Linux %s, libbpf %s\n",
      name.release, libbpf_version_string());
}

Report::~Report() {
  if (json_) absl::PrintF("%s}\n", in_array_ ? "]" : "");
}

void Report::Begin(std::string_view name) {
  if (!json_) return;
  absl::PrintF(R"(%s, "%s": [)", in_array_ ? "]" : "", Av(name));
  in_array_ = true;
  first_ = true;
}

void Report::AddHeading(std::string_view text) {
  if (!json_) absl::PrintF("%s\n", Av(text));
}

void Report::Add(std::string_view text, std::string_view json) {
  if (json_) {
    absl::PrintF("%s%s", first_ ? "" : ", ", Av(json));
  } else {
    absl::PrintF("%s\n", Av(text));
  }
  first_ = false;
  fflush(stdout);
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

bool Fail(std::string_view what, const absl::Status& status) {
  absl::FPrintF(stderr, "attach_bench: %s: %s\n", Av(what), status.message());
  return false;
}

}  // namespace ksweep::bench
