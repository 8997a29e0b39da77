// Short ways to resolve made-up text and to say what comes out.

#ifndef KSWEEP_SELFTESTS_UNIT_RESOLVE_RESOLVE_FIXTURE_H_
#define KSWEEP_SELFTESTS_UNIT_RESOLVE_RESOLVE_FIXTURE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/resolve.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep::testing {

inline std::vector<Request> ParseAll(const std::vector<std::string>& texts) {
  std::vector<Request> requests;
  for (const std::string& text : texts) {
    absl::StatusOr<Request> request = Request::Parse(text);
    if (request.ok()) {
      requests.push_back(*std::move(request));
    } else {
      ADD_FAILURE() << request.status();
    }
  }
  return requests;
}

// The filter list with addresses that makes every function of `kallsyms`
// traceable at its start.
inline std::string AllTraceable(const std::string& kallsyms) {
  std::string list;
  for (size_t at = 0; at < kallsyms.size();) {
    const size_t end = kallsyms.find('\n', at);
    const std::string line = kallsyms.substr(at, end - at);
    at = end + 1;
    const size_t blank = line.find(' ');
    if (std::string_view("tTwW").find(line[blank + 1]) ==
        std::string_view::npos) {
      continue;
    }
    std::string name = line.substr(blank + 3);
    const size_t tab = name.find('\t');
    if (tab != std::string::npos) name[tab] = ' ';
    list += line.substr(0, blank) + " " + name + "\n";
  }
  return list;
}

struct Lists {
  std::string kallsyms;
  // What the filter lists say; "all": AllTraceable(); "none": no such file.
  std::string addrs = "all";
  std::string plain = "none";
};

inline void WriteLists(const Lists& lists, FakeKernel* kernel) {
  kernel->Write(KernelFile::kKallsyms, lists.kallsyms);
  if (lists.addrs != "none") {
    kernel->Write(
        KernelFile::kFilterFunctionsAddrs,
        lists.addrs == "all" ? AllTraceable(lists.kallsyms) : lists.addrs);
  }
  if (lists.plain != "none") {
    kernel->Write(KernelFile::kFilterFunctions, lists.plain);
  }
}

inline absl::StatusOr<Resolution> ResolveLists(const Lists& lists,
                                               std::vector<Request> requests,
                                               const ResolveOptions& options) {
  FakeKernel kernel;
  WriteLists(lists, &kernel);
  return Resolve(std::move(requests), kernel.files(), options);
}

// Resolves with missing ones reported; fails the test if that fails.
inline Resolution MustResolve(const Lists& lists,
                              const std::vector<std::string>& requests,
                              ResolveOptions options = {}) {
  options.missing = OnMissing::kReport;
  absl::StatusOr<Resolution> resolution =
      ResolveLists(lists, ParseAll(requests), options);
  if (!resolution.ok()) {
    ADD_FAILURE() << resolution.status();
    return Resolution();
  }
  return *std::move(resolution);
}

// "name@addr" or "module:name@addr", in order.
inline std::vector<std::string> TargetsOf(const Resolution& resolution) {
  std::vector<std::string> texts;
  for (const Target& target : resolution.targets()) {
    std::string text(target.module);
    if (!text.empty()) text += ":";
    texts.push_back(text + std::string(target.name) +
                    absl::StrFormat("@%x", target.addr));
  }
  return texts;
}

inline std::vector<std::string> TargetNames(const Resolution& resolution) {
  std::vector<std::string> names;
  for (const Target& target : resolution.targets()) {
    names.emplace_back(target.name);
  }
  return names;
}

// "name Reason".
inline std::vector<std::string> OmissionsOf(const Resolution& resolution) {
  std::vector<std::string> texts;
  for (const Omission& omission : resolution.omissions()) {
    texts.push_back(std::string(omission.name) + " " +
                    std::string(ReasonName(omission.reason)));
  }
  return texts;
}

// "request Reason [candidate candidate]".
inline std::vector<std::string> UnmatchedOf(const Resolution& resolution) {
  std::vector<std::string> texts;
  for (const Unmatched& unmatched : resolution.unmatched()) {
    std::string text = resolution.requests()[unmatched.request].ToString() +
                       " " + std::string(ReasonName(unmatched.reason)) + " [";
    for (std::string_view name : unmatched.candidates) {
      if (text.back() != '[') text += ' ';
      text += name;
    }
    texts.push_back(text + "]");
  }
  return texts;
}

// All of a resolution that must not depend on orders, as text.
inline std::string Describe(const Resolution& resolution) {
  std::string text;
  for (const Target& t : resolution.targets()) {
    text +=
        absl::StrFormat("target %x %c %s %s cookie %d%s%s\n", t.addr, t.type,
                        std::string(t.module), std::string(t.name), t.cookie,
                        t.clone ? " clone" : "", t.untested ? " untested" : "");
    text += absl::StrFormat(" btf %d\n", t.btf_id);
    for (const Misfit& misfit : t.misfits) {
      text += " not " + std::string(KindName(misfit.kind)) + " " +
              std::string(ReasonName(misfit.reason)) + "\n";
    }
    for (std::string_view alias : t.aliases) {
      text += " alias " + std::string(alias) + "\n";
    }
    for (uint32_t request : t.requests) {
      text += " for " + resolution.requests()[request].ToString() + "\n";
    }
  }
  for (const Omission& o : resolution.omissions()) {
    text +=
        absl::StrFormat("omission %x %s %s %s\n", o.addr, std::string(o.module),
                        std::string(o.name), std::string(ReasonName(o.reason)));
  }
  std::vector<std::string> unmatched = UnmatchedOf(resolution);
  std::sort(unmatched.begin(), unmatched.end());
  for (const std::string& line : unmatched) text += line + "\n";
  return text;
}

}  // namespace ksweep::testing

#endif  // KSWEEP_SELFTESTS_UNIT_RESOLVE_RESOLVE_FIXTURE_H_
