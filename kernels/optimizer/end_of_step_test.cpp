// The end of a step in every backend: what step.h decides, from numbers in the backend's memory.
#include <cstring>
#include <limits>

#include "kernels/optimizer/step.h"
#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Some values that are the backend's, as an operation wants them.
template <class T>
class Values {
 public:
  Values(Backend& backend, const std::vector<T>& values)
      : backend_(backend), count_(values.size()) {
    memory_ = must(backend.allocate(bytes()));
    backend.upload(values.data(), memory_->data(), bytes());
  }
  Values(Backend& backend, const T& value) : Values(backend, std::vector<T>{value}) {}

  T* data() { return static_cast<T*>(memory_->data()); }
  std::vector<T> all() {
    std::vector<T> values(count_);
    backend_.download(memory_->data(), values.data(), bytes());
    return values;
  }
  T value() { return all().front(); }

 private:
  std::int64_t bytes() const { return static_cast<std::int64_t>(count_ * sizeof(T)); }

  Backend& backend_;
  const std::size_t count_;
  std::unique_ptr<Memory> memory_;
};

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
  const std::unique_ptr<Backend> tested_ = backend(GetParam());
};

TEST_P(EndOfStep, AddsTheLossAndTheWishesAndForgetsTheLoss) {
  Values<LossSums> loss(*tested_, LossSums{1.5, 3, 4});
  Values<StepInput> input(*tested_, StepInput{.stop = 1});
  Values<StepSums> sums(*tested_, StepSums{.loss = 1, .samples = 2});
  tested_->add_step_sums(loss.data(), input.data(), sums.data());
  EXPECT_EQ(sums.value().loss, 2.5F);
  EXPECT_EQ(sums.value().correct, 3);
  EXPECT_EQ(sums.value().samples, 6);
  EXPECT_EQ(sums.value().stop, 1);
  EXPECT_EQ(sums.value().regroup, 0);
  EXPECT_EQ(loss.value().loss, 0);
  EXPECT_EQ(loss.value().samples, 0);
}

TEST_P(EndOfStep, DecidesAsStepSaysBitForBit) {
  const StepSettings settings{.scales_loss = true, .batch_divisor = 4, .clip_norm = 0.3};
  const StepSums step{.loss = 2.3F, .correct = 1, .samples = 3};
  Values<StepSums> sums(*tested_, step);
  Values<StepControl> control(*tested_, first_control(settings));
  StepControl expected = first_control(settings);
  for (const double squares :
       {0.7e9, 0.0, kInfinity, 3.3e3, double{kInfinity} - kInfinity, 1e300}) {
    StepControl before = control.value();
    before.squares = expected.squares = squares;
    tested_->upload(&before, control.data(), sizeof before);
    tested_->decide_step(settings, sums.data(), control.data());
    decide(settings, step, expected);
    expect_same(control.value(), expected);
  }
}

TEST_P(EndOfStep, LeavesStatisticsWhereTheStepBringsThem) {
  StepControl control;
  control.apply = 1;
  control.sums.samples = 3;
  for (const std::int64_t count : {1, 3, 1000}) {
    Values<float> before(*tested_, random_floats(count, 1)),
        sums(*tested_, random_floats(count, 2));
    Values<float> statistics(*tested_, Floats(static_cast<std::size_t>(count)));
    for (const std::int32_t apply : {1, 0}) {
      control.apply = apply;
      Values<StepControl> on_device(*tested_, control);
      tested_->end_statistics(count, on_device.data(), before.data(), sums.data(),
                              statistics.data());
      Floats expected = random_floats(count, apply == 1 ? 2 : 1);
      if (apply == 1) {
        for (float& sum : expected) sum = static_cast<float>(double{sum} / 3);
      }
      EXPECT_EQ(statistics.all(), expected);
    }
  }
}

TEST_P(EndOfStep, AddsScaledNumbers) {
  for (const std::int64_t count : {0, 1, 1000}) {
    const Floats x = random_floats(count, 1);
    Floats expected = random_floats(count, 2);
    Values<float> from(*tested_, x), to(*tested_, expected);
    tested_->add_scaled(count, 1.0F / 3, from.data(), to.data());
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] += 1.0F / 3 * x[i];
    EXPECT_EQ(to.all(), expected);
  }
}

TEST_P(EndOfStep, SumsSquaresInDouble) {
  Values<double> result(*tested_, -1.0);
  for (const std::int64_t count : {0, 1, 17, 4096, 100'001}) {
    const Floats numbers = random_floats(count, 3);
    double expected = 0;  // exact, as the numbers are multiples of 1/64
    for (const float number : numbers) expected += double{number} * number;
    Values<float> values(*tested_, numbers);
    tested_->sum_of_squares(count, values.data(), result.data());
    EXPECT_EQ(result.value(), expected) << count;
  }
}

TEST_P(EndOfStep, TheSumOfSquaresIsTheSameEveryTime) {
  Floats numbers = random_floats(50'000, 3);
  for (float& number : numbers) number *= 1.1F;
  Values<float> values(*tested_, numbers);
  Values<double> first(*tested_, 0.0), second(*tested_, 0.0);
  tested_->sum_of_squares(50'000, values.data(), first.data());
  tested_->sum_of_squares(50'000, values.data(), second.data());
  EXPECT_EQ(first.value(), second.value());
}

TEST_P(EndOfStep, TheSumOfSquaresIsNotFiniteWhereANumberIsNot) {
  for (const double odd : {kInfinity, -kInfinity, double{kInfinity} - kInfinity}) {
    Floats numbers(5000, 1);
    numbers[4321] = static_cast<float>(odd);
    Values<float> values(*tested_, numbers);
    Values<double> result(*tested_, 0.0);
    tested_->sum_of_squares(5000, values.data(), result.data());
    EXPECT_FALSE(std::isfinite(result.value()));
  }
}

INSTANTIATE_TEST_SUITE_P(, EndOfStep, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
