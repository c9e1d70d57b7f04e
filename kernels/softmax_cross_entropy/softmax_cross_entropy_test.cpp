// The loss of every backend: against PyTorch and finite differences.
#include <cmath>
#include <limits>

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

LossSums run(SoftmaxCrossEntropyOp& op, const Array& logits,
             const std::vector<std::int32_t>& labels, const LossOptions& options = {},
             Buffer dlogits = nullptr) {
  LossSums sums;
  op.run(std::ssize(labels), logits.data(), labels.data(), options, &sums, dlogits);
  EXPECT_EQ(sums.samples, std::ssize(labels));
  return sums;
}

class SoftmaxCrossEntropy : public ::testing::TestWithParam<std::string> {};

TEST_P(SoftmaxCrossEntropy, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("softmax_cross_entropy")) {
    const std::int64_t samples = integer_of(c, "samples");
    const std::int64_t classes = integer_of(c, "classes");
    std::vector<std::int32_t> labels;
    for (const Json& label : c.find("labels")->as_array()) {
      labels.push_back(static_cast<std::int32_t>(label.as_integer()));
    }
    auto op = backend(GetParam())->softmax_cross_entropy(classes, DataType::kFloat32);
    const Array z(DataType::kFloat32, floats_of(c, "z"));
    Array dz(DataType::kFloat32, samples * classes);
    const LossSums sums = run(*op, z, labels, {number_of(c, "smoothing", 0)}, dz.data());
    EXPECT_NEAR(sums.loss, c.find("loss")->as_double(), 1e-5 * c.find("loss")->as_double());
    EXPECT_EQ(sums.correct, integer_of(c, "correct"));
    expect_close(dz.floats(), floats_of(c, "dz"), 1e-5, "dz");
  }
}

TEST_P(SoftmaxCrossEntropy, GradientIsTheDerivative) {
  auto op = backend(GetParam())->softmax_cross_entropy(5, DataType::kFloat32);
  const std::vector<std::int32_t> labels = {4, 0, 2};
  Array z(DataType::kFloat32, random_floats(15, 1)), dz(DataType::kFloat32, 15);
  const auto f = [&] { return run(*op, z, labels, {0.2F}).loss; };
  run(*op, z, labels, {0.2F}, dz.data());
  expect_gradient(f, static_cast<float*>(z.data()), dz.floats(), 1.0F / 256, 1e-3, "dz");
}

TEST_P(SoftmaxCrossEntropy, SurvivesHugeLogitsAndTakesTheFirstOfTies) {
  auto op = backend(GetParam())->softmax_cross_entropy(3, DataType::kFloat32);
  const Array z(DataType::kFloat32, Floats{1e30F, 1e30F, -1e30F, 3, 7, 7});
  const std::vector<std::int32_t> labels = {0, 2};
  const LossSums sums = run(*op, z, labels);
  EXPECT_NEAR(sums.loss, std::log(2.0) + std::log(2.0 + std::exp(-4.0)), 1e-6);
  EXPECT_EQ(sums.correct, 1);
}

TEST_P(SoftmaxCrossEntropy, ADivergedNetworkHasNoFiniteLoss) {
  auto op = backend(GetParam())->softmax_cross_entropy(2, DataType::kFloat32);
  const Array z(DataType::kFloat32, Floats{0, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_FALSE(std::isfinite(run(*op, z, {0}).loss));
}

TEST_P(SoftmaxCrossEntropy, AddsUpOverCallsAndScalesOnlyTheGradient) {
  auto op = backend(GetParam())->softmax_cross_entropy(4, DataType::kFloat32);
  const Array z(DataType::kFloat32, random_floats(8, 1));
  const std::vector<std::int32_t> labels = {3, 1};
  Array plain(DataType::kFloat32, 8), scaled(DataType::kFloat32, 8);
  const LossSums once = run(*op, z, labels, {}, plain.data());
  const float scale = 8;
  LossSums twice = once;
  op->run(2, z.data(), labels.data(), {0, &scale}, &twice, scaled.data());
  EXPECT_DOUBLE_EQ(twice.loss, 2 * once.loss);
  EXPECT_EQ(twice.correct, 2 * once.correct);
  EXPECT_EQ(twice.samples, 4);
  Floats eightfold = plain.floats();
  for (float& value : eightfold) value *= scale;
  EXPECT_EQ(scaled.floats(), eightfold);
}

INSTANTIATE_TEST_SUITE_P(, SoftmaxCrossEntropy, ::testing::ValuesIn(backend_names()),
                         backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
