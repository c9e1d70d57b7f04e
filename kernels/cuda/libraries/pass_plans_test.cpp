// When passes are planned, and which implementation does passes without a plan. Plans are numbers
// here.
#include "kernels/cuda/libraries/pass_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fettle::kernels::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Forward {
  std::int64_t samples;
};
struct Backward {
  std::int64_t samples;
};
struct Own {};
using Plans = PassPlans<Forward, Backward, Own>;

// A library that records its requests.
struct Library {
  bool has_backward = true;
  bool has_own = true;
  std::vector<std::string> asked = {};

  Plans plans() {
    return Plans({
        .forward = [this](std::int64_t samples) -> Result<std::optional<Forward>> {
          asked.push_back("forward " + std::to_string(samples));
          if (samples == 0) return io_error("no memory");
          return std::optional(Forward{samples});
        },
        .backward = [this](std::int64_t samples) -> Result<std::optional<Backward>> {
          asked.push_back("backward " + std::to_string(samples));
          if (samples < 0) return io_error("no plan backward");
          return has_backward ? std::optional(Backward{samples}) : std::nullopt;
        },
        .own = [this]() -> Result<std::unique_ptr<Own>> {
          asked.push_back("own");
          if (!has_own) return io_error("no memory for ours");
          return std::make_unique<Own>();
        },
    });
  }
  std::vector<std::string> newly_asked() { return std::exchange(asked, {}); }
};

TEST(PassPlans, AreMadeForTheLargestNumberAtOnce) {
  Library library;
  Plans plans = library.plans();
  ASSERT_TRUE(plans.prepare(64).ok());
  EXPECT_THAT(library.newly_asked(), ElementsAre("forward 64", "backward 64"));
  EXPECT_EQ(plans.forward(64)->samples, 64);
  EXPECT_EQ(plans.backward(64)->samples, 64);
  EXPECT_EQ(plans.own_if_made(), nullptr);
  EXPECT_THAT(library.newly_asked(), IsEmpty());
}

TEST(PassPlans, AnEvaluationPlansNothingBackward) {
  Library library;
  Plans plans = library.plans();
  ASSERT_TRUE(plans.prepare(64).ok());
  library.newly_asked();
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(plans.forward(17)->samples, 17);
  EXPECT_THAT(library.newly_asked(), ElementsAre("forward 17"));
  EXPECT_EQ(plans.backward(17)->samples, 17);
  EXPECT_THAT(library.newly_asked(), ElementsAre("backward 17"));
}

TEST(PassPlans, APassThatIsMissingIsOurs) {
  Library library{.has_backward = false};
  Plans plans = library.plans();
  ASSERT_TRUE(plans.prepare(64).ok());
  EXPECT_THAT(library.newly_asked(), ElementsAre("forward 64", "backward 64", "own"));
  EXPECT_NE(plans.forward(64), nullptr);
  EXPECT_EQ(plans.backward(64), nullptr);
  EXPECT_EQ(plans.backward(17), nullptr);
  EXPECT_EQ(&plans.own(), plans.own_if_made());
  EXPECT_THAT(library.newly_asked(), ElementsAre("backward 17"));
}

// The library may lack a plan for the last batch of an epoch only.
TEST(PassPlans, OursIsMadeWhenARemainderFirstNeedsIt) {
  Library library;
  Plans plans = library.plans();
  ASSERT_TRUE(plans.prepare(64).ok());
  library.has_backward = false;
  library.newly_asked();
  EXPECT_EQ(plans.backward(17), nullptr);
  EXPECT_NE(&plans.own(), nullptr);
  EXPECT_NE(&plans.own(), nullptr);
  EXPECT_THAT(library.newly_asked(), ElementsAre("backward 17", "own"));
}

TEST(PassPlans, TheErrorOfTheFirstPlansIsTold) {
  const auto error_of = [](Library library, std::int64_t samples) {
    Plans plans = library.plans();
    const Status prepared = plans.prepare(samples);
    return prepared.ok() ? "" : prepared.error().message;
  };
  EXPECT_EQ(error_of({}, 64), "");
  EXPECT_EQ(error_of({}, 0), "no memory");
  EXPECT_EQ(error_of({}, -1), "no plan backward");
  EXPECT_EQ(error_of({.has_backward = false, .has_own = false}, 64), "no memory for ours");
}

}  // namespace
}  // namespace fettle::kernels::cuda
