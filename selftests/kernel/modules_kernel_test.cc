// Two modules whose functions share names and BTF ids: md4 and cifs_md4, which
// the runner loads. Each module's types are numbered from the same id on.

#include <linux/if_alg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "lib/base/unique_fd.h"
#include "selftests/kernel/kernel_test_util.h"

namespace ksweep {
namespace {

using testing::Counter;

constexpr char kHashing[] = "md4";              // works when TriggerMd4() does
constexpr char kIdle[] = "cifs_md4";            // has the same code and no user
constexpr char kTransform[] = "md4_transform";  // of both

// The MD4 hash of `blocks` times 64 bytes, by the kernel's md4 module, which
// transforms each block and one more for the padding.
void TriggerMd4(size_t blocks) {
  const UniqueFd hash(socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_GE(hash.get(), 0) << "is algif_hash loaded? " << strerror(errno);
  sockaddr_alg name = {};
  name.salg_family = AF_ALG;
  memcpy(name.salg_type, "hash", sizeof("hash"));
  memcpy(name.salg_name, "md4", sizeof("md4"));
  ASSERT_EQ(bind(hash.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)),
            0)
      << strerror(errno);
  const UniqueFd request(accept4(hash.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_GE(request.get(), 0) << strerror(errno);
  const std::string message(64 * blocks, 'k');
  ASSERT_EQ(write(request.get(), message.data(), message.size()),
            static_cast<ssize_t>(message.size()));
  std::array<char, 16> digest;
  ASSERT_EQ(read(request.get(), digest.data(), digest.size()),
            static_cast<ssize_t>(digest.size()));
}

Kind TrampolineKind() {
  const Feature multi = Features::Running().Find(Kind::kFentryMulti);
  return multi.support == Support::kYes ? Kind::kFentryMulti : Kind::kFentry;
}

Resolution ResolveFor(Kind kind, const std::vector<std::string>& requests) {
  ResolveOptions options;
  options.kinds = {kind};
  return testing::ResolveHere(requests, options);
}

// "btf:MODULE:ID" for each id that is a function's in both modules.
std::vector<std::string> RequestsOfSharedIds(Kind kind) {
  const Resolution all = ResolveFor(kind, {absl::StrFormat("%s:*", kHashing),
                                           absl::StrFormat("%s:*", kIdle)});
  std::map<uint32_t, std::vector<std::string>> modules_of;
  for (const Target& target : all.targets()) {
    modules_of[target.btf_id].emplace_back(target.module);
  }
  std::vector<std::string> requests;
  for (const auto& [id, modules] : modules_of) {
    if (modules.size() < 2) continue;
    for (const std::string& module : modules) {
      requests.push_back(absl::StrFormat("btf:%s:%d", module, id));
    }
  }
  return requests;
}

// Attaches to what is asked for and hashes: functions of the idle module are
// not hit, those of the other are, and md4_transform as often as there are
// blocks.
void ExpectOnlyOneIsHit(Kind kind, const std::vector<std::string>& requests) {
  constexpr size_t kBlocks = 499;
  const Resolution resolution = ResolveFor(kind, requests);
  ASSERT_EQ(resolution.targets().size(), requests.size());
  absl::StatusOr<testing::Counting> counting =
      testing::AttachCounter(resolution, testing::Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  const Counter& counter = *counting->counter;
  Attachment& attachment = counting->attachment;
  EXPECT_EQ(attachment.links().size(),
            kind == Kind::kFentryMulti ? 2u : requests.size());
  TriggerMd4(kBlocks);
  TriggerMd4(kBlocks);
  uint64_t hashing_hits = 0;
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    const Target& target = resolution.targets()[attachment.targets()[slot]];
    const testing::Hit hit = counter.At(slot);
    printf("%s [%s], id %u: %lu hits\n", std::string(target.name).c_str(),
           std::string(target.module).c_str(), target.btf_id,
           static_cast<unsigned long>(hit.cnt));
    if (target.module == kIdle) {
      EXPECT_EQ(hit.cnt, 0u);
    }
    if (hit.cnt > 0) {
      EXPECT_EQ(hit.ip, target.addr);
    }
    hashing_hits += hit.cnt;
    if (target.module == kHashing && target.name == kTransform) {
      EXPECT_EQ(hit.cnt, 2 * (kBlocks + 1));
    }
  }
  EXPECT_GT(hashing_hits, 0u);
  EXPECT_EQ(counter.bad_cookies(), 0u);

  ASSERT_TRUE(attachment.Detach().ok());
  const uint64_t hits = counter.all_hits();
  TriggerMd4(kBlocks);
  EXPECT_EQ(counter.all_hits(), hits);
}

TEST(TwoModules, WithTheSameIds) {
  const Kind kind = TrampolineKind();
  const std::vector<std::string> requests = RequestsOfSharedIds(kind);
  ASSERT_GE(requests.size(), 2u)
      << "are " << kHashing << " and " << kIdle << " loaded?";
  ExpectOnlyOneIsHit(kind, requests);
}

TEST(TwoModules, WithTheSameName) {
  ExpectOnlyOneIsHit(TrampolineKind(),
                     {absl::StrFormat("%s:%s", kHashing, kTransform),
                      absl::StrFormat("%s:%s", kIdle, kTransform)});
}

}  // namespace
}  // namespace ksweep
