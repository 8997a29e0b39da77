// Attachments to update, and what the fake kernel has of them.

#ifndef KSWEEP_SELFTESTS_UNIT_ATTACH_LIVE_UPDATE_FIXTURE_H_
#define KSWEEP_SELFTESTS_UNIT_ATTACH_LIVE_UPDATE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksweep/attach.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {

inline constexpr KindSet kPair = {Kind::kKprobeMulti, Kind::kKretprobeMulti};

// A target of a resolution.
struct Func {
  size_t number = 0;  // its address and name
  std::string_view module = "";
  std::optional<uint64_t> cookie = std::nullopt;
  std::vector<uint64_t> more_cookies = {};
  std::optional<KindSet> kinds = std::nullopt;
};

inline Resolution Make(const std::vector<Func>& funcs,
                       KindSet kinds = {Kind::kKprobeMulti}) {
  bool has_cookies = false;
  for (const Func& func : funcs) has_cookies |= func.cookie.has_value();
  std::vector<Request> requests = {Request::Exact("x")};
  if (has_cookies) requests[0].set_cookie(1);
  ResolutionText text(kinds, requests);
  for (const Func& func : funcs) {
    Target& target = text.Add(func.number);
    target.module = text.builder().text().Copy(func.module);
    if (has_cookies) target.cookie = func.cookie.value_or(0);
    if (func.kinds.has_value()) target.kinds = *func.kinds;
    target.more_cookies =
        text.builder().text().Copy(absl::MakeConstSpan(func.more_cookies));
  }
  return text.Build();
}

class UpdateTest : public AttachFixture {
 protected:
  UpdateTest() { options_.updatable = true; }

  Attachment MustAttach(const Resolution& resolution) {
    absl::StatusOr<Attachment> attachment = AttachFixture::Attach(resolution);
    if (!attachment.ok()) ADD_FAILURE() << attachment.status();
    return attachment.ok() ? *std::move(attachment) : Attachment();
  }

  Attachment MustAttachPair(const Resolution& resolution) {
    absl::StatusOr<Attachment> attachment = AttachFixture::Attach(
        resolution,
        {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKretprobeMulti, prog_fd_}}});
    if (!attachment.ok()) ADD_FAILURE() << attachment.status();
    return attachment.ok() ? *std::move(attachment) : Attachment();
  }

  UpdateReport MustUpdate(Attachment& attachment, const Resolution& newer,
                          const UpdateOptions& options = {}) {
    absl::StatusOr<UpdateReport> report = attachment.Update(newer, options);
    if (!report.ok()) ADD_FAILURE() << report.status();
    return report.ok() ? *report : UpdateReport();
  }

  // By cookie, what the links that are open are for: "func_3", at the return
  // "r:func_3", at both "r:func_3 func_3".
  std::map<uint64_t, std::string> AttachedNow() {
    std::map<uint64_t, std::string> returns, attached;
    for (const FakeBpfSys::Link& link : fake_.links()) {
      if (!fake_.IsOpen(link)) continue;
      const bool at_return = link.flags == kBpfKprobeMultiReturn;
      for (size_t i = 0; i < link.addrs.size(); ++i) {
        const std::string name = NameOf((link.addrs[i] - kText) / 64);
        const bool is_new =
            at_return ? returns.emplace(link.cookies[i], "r:" + name).second
                      : attached.emplace(link.cookies[i], name).second;
        EXPECT_TRUE(is_new) << name << " is attached twice";
      }
    }
    for (const auto& [cookie, name] : returns) {
      std::string& text = attached[cookie];
      text = text.empty() ? name : name + " " + text;
    }
    return attached;
  }
};

using Attached = std::map<uint64_t, std::string>;

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_UNIT_ATTACH_LIVE_UPDATE_FIXTURE_H_
