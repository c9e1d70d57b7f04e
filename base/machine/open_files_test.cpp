#include "base/machine/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace fettle::machine {
namespace {

TEST(OpenFiles, TheSoftLimitIsRaisedAndGivenBack) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_open_files(), 64);
  struct rlimit now {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  limit_open_files(64);
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, 64U);
  EXPECT_EQ(now.rlim_max, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(OpenFiles, LimitTheNumberOfRuns) {
  EXPECT_EQ(runs_within(1024), 200);
  EXPECT_EQ(runs_within(40), 3);
  EXPECT_EQ(runs_within(0), 1);
  EXPECT_EQ(workers_instead(7), 5);
  EXPECT_EQ(workers_instead(1), 1);
}

}  // namespace
}  // namespace fettle::machine
