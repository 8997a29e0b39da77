#include "common/input_lines.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace examples {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InputLinesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(fds_), 0); }
  void TearDown() override {
    close(fds_[0]);
    CloseWriter();
  }

  void Write(std::string_view text) {
    ASSERT_EQ(write(fds_[1], text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void CloseWriter() {
    if (fds_[1] >= 0) close(fds_[1]);
    fds_[1] = -1;
  }

  int fds_[2] = {-1, -1};
};

TEST_F(InputLinesTest, LinesInPieces) {
  InputLines input(fds_[0]);
  Write("release du");
  EXPECT_THAT(input.Read(), IsEmpty());
  Write("mmy\n\nqu");
  EXPECT_THAT(input.Read(), ElementsAre("release dummy", ""));
  Write("it\n");
  EXPECT_THAT(input.Read(), ElementsAre("quit"));
  EXPECT_EQ(input.fd(), fds_[0]);
}

TEST_F(InputLinesTest, TheEndOfTheInputEndsTheLastLine) {
  InputLines input(fds_[0]);
  Write("quit");
  EXPECT_THAT(input.Read(), IsEmpty());
  CloseWriter();
  EXPECT_THAT(input.Read(), ElementsAre("quit"));
  EXPECT_EQ(input.fd(), -1);
}

TEST(InputLines, AClosedDescriptorIsAtItsEnd) {
  InputLines input(-1);
  EXPECT_THAT(input.Read(), IsEmpty());
  EXPECT_EQ(input.fd(), -1);
}

}  // namespace
}  // namespace examples
