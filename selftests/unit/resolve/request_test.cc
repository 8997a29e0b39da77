#include "ksweep/request.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;
using Form = Request::Form;

struct FormCase {
  std::string_view text;
  Form form;
  std::string_view name;
  bool deny;
};

constexpr FormCase kFormCases[] = {
    {"vfs_read", Form::kExact, "vfs_read", false},
    {"f.isra.0", Form::kExact, "f.isra.0", false},
    {"tcp_*", Form::kGlob, "tcp_*", false},
    {"vfs_?", Form::kGlob, "vfs_?", false},
    {"[a-c]*_lock", Form::kGlob, "[a-c]*_lock", false},
    {"[!]x]*", Form::kGlob, "[!]x]*", false},
    {"nf_tables:nft_*", Form::kGlob, "nft_*", false},
    {"nf_*:x", Form::kExact, "x", false},
    {"vmlinux:x", Form::kExact, "x", false},
    {"!vfs_read", Form::kExact, "vfs_read", true},
    {"!xfs:*", Form::kGlob, "*", true},
    {"!syscall:openat", Form::kSyscall, "openat", true},
    {"0xffffffff81234560", Form::kAddress, "", false},
    {"0XFF", Form::kAddress, "", false},
    {"!0x10", Form::kAddress, "", true},
    {"syscall:openat", Form::kSyscall, "openat", false},
    {"btf:1234", Form::kBtfId, "", false},
    {"btf:nf_tables:130001", Form::kBtfId, "", false},
    {"takes:sk_buff", Form::kTakes, "sk_buff", false},
    {"takes:sk_buff@1", Form::kTakes, "sk_buff", false},
    // Bytes, not characters.
    {"drv_\xc3\xa9_on", Form::kExact, "drv_\xc3\xa9_on", false},
    {"x\xff\xfe?", Form::kGlob, "x\xff\xfe?", false},
};

TEST(RequestParse, Forms) {
  for (const FormCase& c : kFormCases) {
    absl::StatusOr<Request> request = Request::Parse(c.text);
    ASSERT_TRUE(request.ok()) << c.text << ": " << request.status();
    EXPECT_EQ(request->form(), c.form) << c.text;
    EXPECT_EQ(request->name(), c.name) << c.text;
    EXPECT_EQ(request->deny(), c.deny) << c.text;
    if (c.text != "0XFF") {
      EXPECT_EQ(request->ToString(), c.text);
    }
  }
}

TEST(RequestParse, NumbersAndOwners) {
  EXPECT_EQ(Request::Parse("0xffffffff81234560")->addr(), 0xffffffff81234560);
  EXPECT_EQ(Request::Parse("btf:1234")->btf_id(), 1234u);
  EXPECT_TRUE(Request::Parse("btf:1234")->owner().is_core());
  EXPECT_TRUE(Request::Parse("btf:vmlinux:7")->owner().is_core());
  EXPECT_EQ(Request::Parse("btf:xfs:7")->owner().module_pattern(), "xfs");
  EXPECT_EQ(Request::Parse("takes:sk_buff@3")->parameter(), 3);
  EXPECT_EQ(Request::Parse("takes:sk_buff")->parameter(), 0);
  EXPECT_TRUE(Request::Parse("x")->owner().is_any());
  EXPECT_TRUE(Request::Parse("vmlinux:x")->owner().is_core());
}

struct OwnerCase {
  std::string_view text;
  std::string_view module;
  bool want;
};

constexpr OwnerCase kOwnerCases[] = {
    {"x", "", true},
    {"x", "xfs", true},
    {"vmlinux:x", "", true},
    {"vmlinux:x", "xfs", false},
    {"xfs:x", "xfs", true},
    {"xfs:x", "xf", false},
    {"xfs:x", "", false},
    {"nf_*:x", "nf_tables", true},
    {"*:x", "xfs", true},
    // A wildcard never means the core kernel.
    {"*:x", "", false},
    {"v*:x", "", false},
    {"v*:x", "veth", true},
    {"[v]mlinux:x", "", false},
};

TEST(Owner, Matches) {
  for (const OwnerCase& c : kOwnerCases) {
    EXPECT_EQ(Request::Parse(c.text)->owner().Matches(c.module), c.want)
        << c.text << " " << c.module;
  }
}

struct MalformedCase {
  std::string_view text;
  int position;
  std::string_view what;
};

constexpr MalformedCase kMalformedCases[] = {
    {"", 1, "empty"},
    {"!", 2, "empty"},
    {"!!x", 2, "second '!'"},
    {"a b", 2, "blank"},
    {"a\tb", 2, "blank"},
    {"vfs_read\n", 9, "blank"},
    {":x", 1, "empty"},
    {":", 1, "empty"},
    {"m:x[", 4, "without ']'"},
    {"xfs:", 5, "a name is missing"},
    {"a:b:c", 4, "second ':'"},
    {"x[", 2, "without ']'"},
    {"x[a", 2, "without ']'"},
    {"x[]", 2, "without ']'"},
    {"x[!]", 2, "without ']'"},
    {"m[:x", 2, "without ']'"},
    {"m:x[", 4, "without ']'"},
    {"!m:ab[", 6, "without ']'"},
    {"[z-a]*", 2, "range"},
    {"0x", 3, "a number is missing"},
    {"0xfg", 4, "not a hexadecimal digit"},
    {"0x11112222333344445", 3, "too large"},
    {"0x0", 1, "address 0"},
    {"btf:", 5, "a number is missing"},
    {"btf:12x", 7, "not a digit"},
    {"btf:99999999999", 5, "too large"},
    {"btf:0", 5, "void"},
    {"btf::1", 5, "a name is missing"},
    {"btf:n*:1", 6, "plain name"},
    {"!btf:1", 2, "cannot be denied"},
    {"takes:", 7, "a name is missing"},
    {"takes:a*", 8, "plain name"},
    {"takes:sk_buff@", 15, "a number is missing"},
    {"takes:sk_buff@0", 15, "counted from 1"},
    {"takes:sk_buff@x", 15, "not a digit"},
    {"!takes:sk_buff", 2, "cannot be denied"},
    {"syscall:", 9, "a name is missing"},
    {"syscall:open*", 13, "plain name"},
};

TEST(RequestParse, RefusesWithThePosition) {
  for (const MalformedCase& c : kMalformedCases) {
    absl::StatusOr<Request> request = Request::Parse(c.text);
    ASSERT_FALSE(request.ok()) << c.text;
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(request.status().message());
    EXPECT_THAT(message,
                HasSubstr("position " + std::to_string(c.position) + ":"))
        << c.text;
    EXPECT_THAT(message, HasSubstr(std::string(c.what))) << c.text;
    EXPECT_THAT(message, HasSubstr("'" + std::string(c.text) + "'"));
  }
}

TEST(Request, TypedCalls) {
  EXPECT_EQ(Request::Exact("a*b").form(), Form::kExact);
  EXPECT_EQ(Request::Exact("x", Owner::Core()).ToString(), "vmlinux:x");
  EXPECT_EQ(Request::Exact("x", Owner::Module("m")).ToString(), "m:x");
  EXPECT_EQ(Request::Glob("a*", Owner::Module("n?"))->ToString(), "n?:a*");
  EXPECT_FALSE(Request::Glob("a[").ok());
  EXPECT_FALSE(Request::Glob("").ok());
  EXPECT_FALSE(Request::Glob("a*", Owner::Module("[")).ok());
  EXPECT_EQ(Request::Address(16).ToString(), "0x10");
  EXPECT_EQ(Request::BtfId(5, "m").ToString(), "btf:m:5");
  EXPECT_EQ(Request::Takes("s", 2).ToString(), "takes:s@2");
  Request request = Request::Exact("x");
  EXPECT_FALSE(request.cookie().has_value());
  request.set_cookie(7).set_unique().set_deny();
  EXPECT_EQ(request.cookie(), 7u);
  EXPECT_TRUE(request.unique());
  EXPECT_EQ(request.ToString(), "!x");
}

TEST(RequestFile, SkipsBlanksAndComments) {
  absl::StatusOr<std::vector<Request>> requests = ParseRequests(
      "# all of it\n"
      "vfs_*   # globs\n"
      "\n"
      "  \t!vfs_read\r\n"
      "tcp_ack",
      "probes.txt");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  EXPECT_EQ((*requests)[0].ToString(), "vfs_*");
  EXPECT_EQ((*requests)[1].ToString(), "!vfs_read");
  EXPECT_EQ((*requests)[2].ToString(), "tcp_ack");
}

TEST(RequestFile, AByteOrderMarkIsNoName) {
  absl::StatusOr<std::vector<Request>> requests =
      ParseRequests("\xef\xbb\xbfvfs_read\n", "probes.txt");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 1u);
  EXPECT_EQ((*requests)[0].ToString(), "vfs_read");
}

TEST(RequestFile, NamesTheLine) {
  absl::StatusOr<std::vector<Request>> requests =
      ParseRequests("a\nb\nc[\n", "probes.txt");
  ASSERT_FALSE(requests.ok());
  EXPECT_THAT(std::string(requests.status().message()),
              HasSubstr("probes.txt:3: malformed request 'c['"));
}

TEST(RequestFile, Loads) {
  testing::FakeKernel folder;
  folder.WritePath("probes.txt", "a\nb*\n");
  absl::StatusOr<std::vector<Request>> requests =
      LoadRequests(folder.root() + "/probes.txt");
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_EQ(requests->size(), 2u);

  requests = LoadRequests(folder.root() + "/none.txt");
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(requests.status().message()), HasSubstr("none.txt"));
}

}  // namespace
}  // namespace ksweep
