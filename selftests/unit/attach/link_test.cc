#include "ksweep/link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <type_traits>
#include <utility>
#include <vector>

#include "ksweep/status.h"
#include "selftests/testing/fake_bpf.h"

namespace ksweep {
namespace {

static_assert(!std::is_copy_constructible_v<Link>);
static_assert(std::is_nothrow_move_constructible_v<Link>);  // for vectors

int NewFd() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(Link, DestructorCloses) {
  const int fd = NewFd();
  { const Link link(fd); }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(Link, EmptyHasNothingToClose) {
  const size_t before = CountOpenFds();
  Link link;
  EXPECT_EQ(link.fd(), -1);
  EXPECT_TRUE(link.Detach().ok());
  EXPECT_EQ(link.Release(), -1);
  EXPECT_EQ(CountOpenFds(), before);
}

TEST(Link, MoveTakesTheDescriptor) {
  const int fd = NewFd();
  Link from(fd);
  const Link to(std::move(from));
  EXPECT_EQ(from.fd(), -1);  // NOLINT: what a move leaves
  EXPECT_EQ(to.fd(), fd);
  EXPECT_TRUE(IsOpen(fd));
}

TEST(Link, MoveAssignmentClosesTheOldOne) {
  const int old_fd = NewFd();
  const int new_fd = NewFd();
  Link link(old_fd);
  link = Link(new_fd);
  EXPECT_FALSE(IsOpen(old_fd));
  EXPECT_TRUE(IsOpen(new_fd));
  EXPECT_EQ(link.fd(), new_fd);
}

TEST(Link, MoveAssignmentToItselfKeepsIt) {
  const int fd = NewFd();
  Link link(fd);
  Link& same = link;
  link = std::move(same);
  EXPECT_EQ(link.fd(), fd);
  EXPECT_TRUE(IsOpen(fd));
}

TEST(Link, DetachClosesOnce) {
  const int fd = NewFd();
  Link link(fd);
  EXPECT_TRUE(link.Detach().ok());
  EXPECT_EQ(link.fd(), -1);
  EXPECT_FALSE(IsOpen(fd));

  const int reused = NewFd();  // the lowest free number: most likely `fd`
  EXPECT_TRUE(link.Detach().ok());
  EXPECT_TRUE(IsOpen(reused));
  close(reused);
}

TEST(Link, BugCase58_DetachKeepsTheErrno) {
  const int fd = NewFd();
  Link link(fd);
  close(fd);
  const absl::Status status = link.Detach();
  EXPECT_EQ(ErrnoOf(status), EBADF) << status;
  EXPECT_EQ(link.fd(), -1);
}

TEST(Link, ReleaseGivesItAway) {
  const int fd = NewFd();
  {
    Link link(fd);
    EXPECT_EQ(link.Release(), fd);
  }
  EXPECT_TRUE(IsOpen(fd));
  close(fd);
}

TEST(Link, VectorsOfLinksGrow) {
  const size_t before = CountOpenFds();
  {
    std::vector<Link> links;
    for (int i = 0; i < 20; ++i) links.emplace_back(NewFd());
    EXPECT_EQ(CountOpenFds(), before + 20);
    links.erase(links.begin());
    EXPECT_EQ(CountOpenFds(), before + 19);
  }
  EXPECT_EQ(CountOpenFds(), before);
}

}  // namespace
}  // namespace ksweep
