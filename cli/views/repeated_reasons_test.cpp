#include "cli/views/repeated_reasons.h"

#include <gtest/gtest.h>

namespace fettle::cli {
namespace {

constexpr const char* kReason = "exited with 0 but reported no metric; the nearest line holds 0.31";

TEST(RepeatedReasons, ALongReasonIsWrittenOnce) {
  RepeatedReasons reasons;
  EXPECT_EQ(reasons.shorten("digits-0", kReason), kReason);
  EXPECT_EQ(reasons.shorten("digits-1", kReason), "as digits-0");
}

TEST(RepeatedReasons, NumbersMakeNoDifference) {
  RepeatedReasons reasons;
  reasons.shorten("digits-0", kReason);
  EXPECT_EQ(reasons.shorten("digits-1",
                            "exited with 0 but reported no metric; the nearest line holds 17"),
            "as digits-0");
}

TEST(RepeatedReasons, AKnownReasonIsShortenedAtTheEndOfAnother) {
  RepeatedReasons reasons;
  reasons.shorten("digits-0", kReason);
  EXPECT_EQ(reasons.shorten("digits-3",
                            "3 trials failed; the last one, digits-2: " + std::string(kReason)),
            "3 trials failed; the last one, digits-2: as digits-0");
}

TEST(RepeatedReasons, ATrialIsNotReferredToItself) {
  RepeatedReasons reasons;
  reasons.shorten("digits-0", kReason);
  EXPECT_EQ(reasons.shorten("digits-0", kReason), kReason);
}

TEST(RepeatedReasons, AShortReasonIsWrittenAgain) {
  RepeatedReasons reasons;
  reasons.shorten("digits-0", "exit code 3");
  EXPECT_EQ(reasons.shorten("digits-1", "exit code 3"), "exit code 3");
}

}  // namespace
}  // namespace fettle::cli
