// Names of trials lead back to their index, and no other text does.
#include "core/names.h"

#include <gtest/gtest.h>

namespace fettle::core {
namespace {

TEST(TrialIndex, IsThatOfTheNameAlone) {
  EXPECT_EQ(trial_index("digits", "digits-0"), 0);
  EXPECT_EQ(trial_index("digits", trial_name("digits", 13)), 13);
  for (const char* other : {"digits", "digits-", "digits13", "digits-03", "digits--1", "digits-1x",
                            "digit-13", "digits-2-13", "digits-99999999999999999999"}) {
    EXPECT_EQ(trial_index("digits", other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace fettle::core
