// Closed basins, and neglected values of small parameters.
#include "search/gp/deflation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "search/gp/forced_exploration.h"
#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search::gp {
namespace {

using search::testing::choice;
using search::testing::integer;
using search::testing::real;
using search::testing::result;

Space space_of(const std::vector<api::Parameter>& parameters) {
  return std::move(Space::make(parameters)).value();
}

// Targets of points with losses; a point without a loss is pending.
class Known {
 public:
  explicit Known(const std::vector<api::Parameter>& parameters)
      : space(space_of(parameters)),
        axes(axes_of(space)),
        targets(std::vector<api::Objective>(1)),
        fits(space, axes) {}

  void add(const Point& point, std::optional<double> loss) {
    targets.add_trial(&point);
    if (loss) targets.add_event(result(trials_, loss));
    ++trials_;
  }
  Model model() { return {space, axes, targets, fits.current(targets)}; }

  Space space;
  Axes axes;
  Targets targets;
  Fits fits;

 private:
  std::int64_t trials_ = 0;
};

TEST(ForcedExploration, FindsTheValueThatFewTrialsHave) {
  Known known({choice("kind", {"a", "b", "c"}), integer("k", 1, 20), real("x", 0, 1)});
  EXPECT_FALSE(neglected_slice(known.space, known.targets));
  for (int i = 0; i < 10; ++i) known.add({i % 2 == 0 ? 0.0 : 1.0, 3, 0.1 * i}, 1.0 * i);
  const std::optional<Slice> slice = neglected_slice(known.space, known.targets);
  ASSERT_TRUE(slice) << "nobody has tried c; an integer of 20 values is not split";
  EXPECT_EQ(slice->parameter, 0U);
  EXPECT_EQ(slice->cell, 2);
  EXPECT_TRUE(slice->contains({2, 5, 0.5}));
  EXPECT_FALSE(slice->contains({1, 5, 0.5}));
  known.add({2, 3, 0.5}, std::nullopt);
  EXPECT_TRUE(neglected_slice(known.space, known.targets)) << "one of eleven: 27 % of a third";
  known.add({2, 3, 0.6}, std::nullopt);
  EXPECT_FALSE(neglected_slice(known.space, known.targets)) << "pending trials count";
}

TEST(ForcedExploration, OnlyTrialsThatHaveTheParameterCount) {
  Known known({choice("kind", {"a", "b"}),
               search::testing::only_if(choice("sub", {"p", "q"}), "kind", {"b"})});
  for (int i = 0; i < 20; ++i) known.add({0, kInactive}, 1.0 * i);
  for (int i = 0; i < 6; ++i) known.add({1, i < 3 ? 0.0 : 1.0}, 1.0 * i);
  EXPECT_FALSE(neglected_slice(known.space, known.targets));
}

TEST(Deflation, ClosesOneBasinAfterTheOther) {
  Known known({choice("kind", {"a", "b"}), real("x", 0, 1)});
  for (int i = 0; i <= 8; ++i) {
    known.add({0, 0.1 + 0.01 * i}, 0.01 * i * i);
    known.add({1, 0.1 + 0.01 * i}, 1 + 0.01 * i);
  }
  const Model model = known.model();
  Deflation deflation(known.space, model, known.targets);
  EXPECT_EQ(*deflation.best(), model.best()) << "nothing is closed yet";
  ASSERT_TRUE(deflation.close_best());
  EXPECT_TRUE(deflation.is_closed({0, 0.11}));
  EXPECT_FALSE(deflation.is_closed({1, 0.11})) << "another choice is another basin";
  ASSERT_TRUE(deflation.best());
  EXPECT_GT(*deflation.best(), model.best());
  ASSERT_TRUE(deflation.close_best());
  EXPECT_TRUE(deflation.is_closed({1, 0.11}));
  EXPECT_FALSE(deflation.best()) << "all trials lie in the two";
  EXPECT_FALSE(deflation.close_best());
}

TEST(Deflation, ClosesNoMoreThanSome) {
  Known known({choice("kind", {"a", "b", "c", "d", "e", "f", "g"}), real("x", 0, 1)});
  for (int i = 0; i < 14; ++i) known.add({static_cast<double>(i % 7), 0.5}, 1.0 * i);
  const Model model = known.model();
  Deflation deflation(known.space, model, known.targets);
  int closed = 0;
  while (deflation.close_best()) ++closed;
  EXPECT_EQ(closed, kMostClosed);
}

}  // namespace
}  // namespace fettle::search::gp
