// The loss of every backend: against PyTorch and finite differences.
#include <algorithm>
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

void expect_the_reference(Backend& tested, DataType type, std::int64_t samples,
                          std::int64_t classes, float smoothing, float teacher_weight = 0) {
  const Array z(type, random_floats(samples * classes, 1));
  const Array teachers(type, random_floats(samples * classes, 2));
  std::vector<std::int32_t> labels;
  for (std::int64_t s = 0; s < samples; ++s) {
    labels.push_back(static_cast<std::int32_t>(s * 7919 % classes));
  }
  const float scale = 4;
  LossOptions options{smoothing, &scale};
  if (teacher_weight > 0) options.teacher = {teachers.data(), 1.5F, teacher_weight};
  Array dz(type, samples * classes), expected_dz(type, samples * classes);
  const LossSums found =
      run(*tested.softmax_cross_entropy(classes, type), z, labels, options, dz.data());
  const LossSums expected = run(*backend("reference")->softmax_cross_entropy(classes, type), z,
                                labels, options, expected_dz.data());
  EXPECT_NEAR(found.loss, expected.loss, 1e-5 * expected.loss + 1e-6);
  EXPECT_EQ(found.correct, expected.correct);
  expect_close(dz.floats(), expected_dz.floats(), type == DataType::kFloat32 ? 1e-6 : 1e-2, "dz");
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
    LossOptions options{number_of(c, "smoothing", 0)};
    const bool taught = c.find("teacher") != nullptr;
    const Array teachers(DataType::kFloat32, taught ? floats_of(c, "teacher") : Floats{});
    if (taught) {
      options.teacher = {teachers.data(), number_of(c, "temperature", 1),
                         number_of(c, "weight", 0)};
    }
    const LossSums sums = run(*op, z, labels, options, dz.data());
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

TEST_P(SoftmaxCrossEntropy, GradientWithATeacherIsTheDerivative) {
  auto op = backend(GetParam())->softmax_cross_entropy(5, DataType::kFloat32);
  const std::vector<std::int32_t> labels = {4, 0, 2};
  Array z(DataType::kFloat32, random_floats(15, 1)), dz(DataType::kFloat32, 15);
  const Array teachers(DataType::kFloat32, random_floats(15, 2));
  const LossOptions options{.label_smoothing = 0.2F, .teacher = {teachers.data(), 3, 0.6F}};
  const auto f = [&] { return run(*op, z, labels, options).loss; };
  run(*op, z, labels, options, dz.data());
  expect_gradient(f, static_cast<float*>(z.data()), dz.floats(), 1.0F / 256, 1e-3, "dz");
}

TEST_P(SoftmaxCrossEntropy, ATeacherThatAgreesChangesOnlyTheWeight) {
  auto op = backend(GetParam())->softmax_cross_entropy(70, DataType::kFloat32);
  const std::vector<std::int32_t> labels = {4, 0, 69};
  const Array z(DataType::kFloat32, random_floats(210, 1));
  Array alone(DataType::kFloat32, 210), taught(DataType::kFloat32, 210);
  const LossSums plain = run(*op, z, labels, {}, alone.data());
  const LossSums sums = run(*op, z, labels, {.teacher = {z.data(), 4, 0.5F}}, taught.data());
  EXPECT_NEAR(sums.loss, plain.loss / 2, 1e-6 * plain.loss);
  EXPECT_EQ(sums.correct, plain.correct);
  Floats half = alone.floats();
  for (float& value : half) value /= 2;
  expect_close(taught.floats(), half, 1e-7, "dz");
}

TEST_P(SoftmaxCrossEntropy, MayWriteOverTheLogitsWithATeacher) {
  for (const std::int64_t classes : {65, 5003, 60001}) {
    auto op = backend(GetParam())->softmax_cross_entropy(classes, DataType::kBFloat16);
    Array z(DataType::kBFloat16, random_floats(2 * classes, 1)),
        dz(DataType::kBFloat16, 2 * classes);
    const Array teachers(DataType::kBFloat16, random_floats(2 * classes, 2));
    const LossOptions options{.teacher = {teachers.data(), 2, 0.9F}};
    const LossSums apart = run(*op, z, {0, 64}, options, dz.data());
    EXPECT_EQ(run(*op, z, {0, 64}, options, z.data()).loss, apart.loss);
    EXPECT_EQ(z.floats(), dz.floats());
  }
}

TEST_P(SoftmaxCrossEntropy, SurvivesHugeLogitsOfATeacher) {
  auto op = backend(GetParam())->softmax_cross_entropy(3, DataType::kFloat32);
  const Array z(DataType::kFloat32, Floats{1, 2, 3});
  const Array teachers(DataType::kFloat32, Floats{1e30F, -1e30F, 3});
  const LossOptions options{.teacher = {teachers.data(), 2, 1}};
  const double first = 0.5 - std::log(std::exp(0.5) + std::exp(1.0) + std::exp(1.5));
  EXPECT_NEAR(run(*op, z, {0}, options).loss, -4 * first, 1e-5);
}

TEST_P(SoftmaxCrossEntropy, MayWriteItsGradientOverTheLogits) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
    auto op = backend(GetParam())->softmax_cross_entropy(70, type);
    const std::vector<std::int32_t> labels = {4, 0, 69};
    Array z(type, random_floats(210, 1)), dz(type, 210);
    const double loss = run(*op, z, labels, {0.2F}, dz.data()).loss;
    EXPECT_EQ(run(*op, z, labels, {0.2F}, z.data()).loss, loss);
    EXPECT_EQ(z.floats(), dz.floats());
  }
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

// A NaN is the largest in the first place and nowhere else. So a row of NaN has class 0, as in
// PyTorch's argmax.
TEST_P(SoftmaxCrossEntropy, ADivergedNetworkIsNotRightAboutEveryLabel) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr std::int64_t kCorrect[] = {2, 0, 1};  // of three rows, if all have this label
  // Rows of a warp, of a block, and of a block that cannot keep them.
  for (const std::int64_t classes : {3, 5003, 60001}) {
    Floats logits = random_floats(3 * classes, 1);
    float* const row[] = {&logits[0], &logits[0] + classes, &logits[0] + 2 * classes};
    std::fill_n(row[0], classes, kNaN);
    row[1][0] = row[2][1] = kNaN;
    row[1][2] = row[2][2] = 9;  // the largest number
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      auto op = backend(GetParam())->softmax_cross_entropy(classes, type);
      for (const std::int32_t label : {0, 1, 2}) {
        Array z(type, logits);
        EXPECT_EQ(run(*op, z, {label, label, label}, {}, z.data()).correct, kCorrect[label])
            << classes << " classes, label " << label;
      }
    }
  }
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

// Sizes around vectors and warps, and a row that is too long to keep. Most rows begin at addresses
// that are not aligned to a vector.
TEST_P(SoftmaxCrossEntropy, AgreesWithTheReferenceAtEverySize) {
  constexpr std::int64_t kSamplesAndClasses[][2] = {{1, 1},    {3, 2},    {9, 31},   {7, 33},
                                                    {5, 65},   {2, 1000}, {2, 1023}, {2, 1025},
                                                    {2, 5003}, {2, 60001}};
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    for (const auto& [samples, classes] : kSamplesAndClasses) {
      for (const float smoothing : {0.0F, 0.1F}) {
        expect_the_reference(*backend(GetParam()), type, samples, classes, smoothing);
        expect_the_reference(*backend(GetParam()), type, samples, classes, smoothing, 0.75F);
      }
    }
  }
}

TEST_P(SoftmaxCrossEntropy, AgreesWithTheReferenceOnManyRows) {
  expect_the_reference(*backend(GetParam()), DataType::kFloat32, 2099, 3, 0);
}

TEST_P(SoftmaxCrossEntropy, MayWriteOverTheLogits) {
  for (const std::int64_t classes : {65, 5003}) {
    auto op = backend(GetParam())->softmax_cross_entropy(classes, DataType::kBFloat16);
    Array z(DataType::kBFloat16, random_floats(3 * classes, 1)),
        dz(DataType::kBFloat16, 3 * classes);
    const std::vector<std::int32_t> labels = {0, 5, 64};
    const LossSums apart = run(*op, z, labels, {0.1F}, dz.data());
    const LossSums over = run(*op, z, labels, {0.1F}, z.data());
    EXPECT_EQ(over.loss, apart.loss);
    EXPECT_EQ(z.floats(), dz.floats());
  }
}

TEST_P(SoftmaxCrossEntropy, AddsToTheSums) {
  auto op = backend(GetParam())->softmax_cross_entropy(2, DataType::kFloat32);
  const Array z(DataType::kFloat32, Floats{0, 0, 1, 0});
  const std::vector<std::int32_t> labels = {0, 1};
  LossSums sums{10, 20, 30};
  op->run(2, z.data(), labels.data(), {}, &sums, nullptr);
  backend(GetParam())->wait();
  EXPECT_NEAR(sums.loss, 10 + std::log(2.0) + std::log(1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(sums.correct, 21);
  EXPECT_EQ(sums.samples, 32);
}

// Checks one block and several.
TEST_P(SoftmaxCrossEntropy, EndsAStepAsAddStepSumsWould) {
  Backend& tested = *backend(GetParam());
  for (const std::int64_t samples : {3, 50}) {
    auto op = tested.softmax_cross_entropy(7, DataType::kFloat32);
    const Array z(DataType::kFloat32, random_floats(samples * 7, 1));
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(samples), 5);
    const StepInput input{.stop = 1, .regroup = 0};
    const StepSums before{.loss = 0.3F, .correct = 2, .samples = 9};
    LossSums apart{0.1, 1, 2}, together = apart;
    StepSums expected = before, found = before;
    op->run(samples, z.data(), labels.data(), {}, &apart, nullptr);
    tested.add_step_sums(&apart, &input, &expected);
    op->run(samples, z.data(), labels.data(), {.step_input = &input, .step_sums = &found},
            &together, nullptr);
    tested.wait();
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.correct, expected.correct);
    EXPECT_EQ(found.samples, static_cast<float>(9 + 2 + samples));
    EXPECT_EQ(found.not_finite, 0);
    EXPECT_EQ(found.stop, 1);
    EXPECT_EQ(together.loss, 0) << "the next step begins with nothing";
    EXPECT_EQ(together.samples, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, SoftmaxCrossEntropy, ::testing::ValuesIn(backend_names()),
                         backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
