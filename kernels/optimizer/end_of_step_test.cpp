// The end of a step in every backend: step.h's decisions, from numbers in the backend's memory.
#include <limits>

#include "kernels/optimizer/step.h"
#include "kernels/testing/arrays.h"
#include "kernels/testing/device.h"

namespace fettle::kernels::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_same(const StepControl& found, const StepControl& expected) {
  EXPECT_EQ(found.sums.loss, expected.sums.loss);
  EXPECT_EQ(found.gradient_scale, expected.gradient_scale);
  EXPECT_EQ(found.apply, expected.apply);
  EXPECT_EQ(found.skipped, expected.skipped);
  EXPECT_EQ(found.updates, expected.updates);
  EXPECT_EQ(found.loss_scale, expected.loss_scale);
  EXPECT_EQ(found.dlogits_scale, expected.dlogits_scale);
}

class EndOfStep : public ::testing::TestWithParam<std::string> {
 protected:
  Backend* const tested_ = backend(GetParam());
};

TEST_P(EndOfStep, AddsTheLossAndTheRequestsAndForgetsTheLoss) {
  auto loss = on_device(*tested_, LossSums{1.5, 3, 4});
  auto input = on_device(*tested_, StepInput{.stop = 1});
  auto sums = on_device(*tested_, StepSums{.loss = 1, .samples = 2});
  tested_->add_step_sums(loss.data(), input.data(), sums.data());
  EXPECT_EQ(value_of(sums).loss, 2.5F);
  EXPECT_EQ(value_of(sums).correct, 3);
  EXPECT_EQ(value_of(sums).samples, 6);
  EXPECT_EQ(value_of(sums).stop, 1);
  EXPECT_EQ(value_of(sums).regroup, 0);
  EXPECT_EQ(value_of(loss).loss, 0);
  EXPECT_EQ(value_of(loss).samples, 0);
}

TEST_P(EndOfStep, DecidesAsStepSaysBitForBit) {
  const StepSettings settings{.scales_loss = true, .batch_divisor = 4, .clip_norm = 0.3};
  const StepSums step{.loss = 2.3F, .correct = 1, .samples = 3};
  auto sums = on_device(*tested_, step);
  auto control = on_device(*tested_, first_control(settings));
  StepControl expected = first_control(settings);
  for (const double squares :
       {0.7e9, 0.0, kInfinity, 3.3e3, double{kInfinity} - kInfinity, 1e300}) {
    StepControl before = value_of(control);
    before.squares = expected.squares = squares;
    control.upload({&before, 1});
    tested_->decide_step(settings, sums.data(), control.data());
    decide(settings, step, expected);
    expect_same(value_of(control), expected);
  }
}

TEST_P(EndOfStep, LeavesStatisticsWhereTheStepBringsThem) {
  StepControl control;
  control.apply = 1;
  control.sums.samples = 3;
  for (const std::int64_t count : {1, 3, 1000}) {
    auto before = on_device(*tested_, random_floats(count, 1));
    auto sums = on_device(*tested_, random_floats(count, 2));
    auto statistics = on_device(*tested_, Floats(static_cast<std::size_t>(count)));
    for (const std::int32_t apply : {1, 0}) {
      control.apply = apply;
      const auto decided = on_device(*tested_, control);
      tested_->end_statistics(count, decided.data(), before.data(), sums.data(), statistics.data());
      Floats expected = random_floats(count, apply == 1 ? 2 : 1);
      if (apply == 1) {
        for (float& sum : expected) sum = static_cast<float>(double{sum} / 3);
      }
      EXPECT_EQ(statistics.download(), expected);
    }
  }
}

TEST_P(EndOfStep, AddsScaledNumbers) {
  for (const std::int64_t count : {0, 1, 1000}) {
    const Floats x = random_floats(count, 1);
    Floats expected = random_floats(count, 2);
    auto from = on_device(*tested_, x);
    auto to = on_device(*tested_, expected);
    tested_->add_scaled(count, 1.0F / 3, from.data(), to.data());
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] += 1.0F / 3 * x[i];
    EXPECT_EQ(to.download(), expected);
  }
}

TEST_P(EndOfStep, SumsSquaresInDouble) {
  auto result = on_device(*tested_, -1.0);
  for (const std::int64_t count : {0, 1, 17, 4096, 100'001}) {
    const Floats numbers = random_floats(count, 3);
    double expected = 0;  // exact, as the numbers are multiples of 1/64
    for (const float number : numbers) expected += double{number} * number;
    auto values = on_device(*tested_, numbers);
    tested_->sum_of_squares(count, values.data(), result.data());
    EXPECT_EQ(value_of(result), expected) << count;
  }
}

TEST_P(EndOfStep, TheSumOfSquaresIsTheSameEveryTime) {
  Floats numbers = random_floats(50'000, 3);
  for (float& number : numbers) number *= 1.1F;
  auto values = on_device(*tested_, numbers);
  auto first = on_device(*tested_, 0.0);
  auto second = on_device(*tested_, 0.0);
  tested_->sum_of_squares(50'000, values.data(), first.data());
  tested_->sum_of_squares(50'000, values.data(), second.data());
  EXPECT_EQ(value_of(first), value_of(second));
}

TEST_P(EndOfStep, TheSumOfSquaresIsNotFiniteWhereANumberIsNot) {
  for (const double odd : {kInfinity, -kInfinity, double{kInfinity} - kInfinity}) {
    Floats numbers(5000, 1);
    numbers[4321] = static_cast<float>(odd);
    auto values = on_device(*tested_, numbers);
    auto result = on_device(*tested_, 0.0);
    tested_->sum_of_squares(5000, values.data(), result.data());
    EXPECT_FALSE(std::isfinite(value_of(result)));
  }
}

INSTANTIATE_TEST_SUITE_P(, EndOfStep, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
