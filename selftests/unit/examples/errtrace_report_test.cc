#include "errtrace_report.h"

#include <string_view>

#include "gtest/gtest.h"

namespace examples {
namespace {

struct NameCase {
  int err;
  std::string_view want;
};

TEST(ErrorName, Cases) {
  constexpr NameCase kCases[] = {
      {1, "EPERM"},         {2, "ENOENT"},      {11, "EAGAIN"},
      {22, "EINVAL"},       {95, "EOPNOTSUPP"}, {512, "ERESTARTSYS"},
      {524, "ENOTSUPP"},    {520, "error 520"},  // a gap
      {4095, "error 4095"}, {531, "ENOGRACE"},
  };
  for (const NameCase& c : kCases) EXPECT_EQ(ErrorName(c.err), c.want);
}

}  // namespace
}  // namespace examples
