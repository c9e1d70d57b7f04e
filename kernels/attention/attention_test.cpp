// Attention of every backend: against PyTorch, finite differences and the reference.
#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Case {
  AttentionShape shape;
  std::int64_t samples = 1;
  Floats qkv, dy;
};

struct Outcome {
  Floats y, dqkv;
};

Case random_case(const AttentionShape& shape, std::int64_t samples) {
  const std::int64_t count = samples * shape.length * shape.channels();
  return {shape, samples, random_floats(3 * count, 1), random_floats(count, 2)};
}

Outcome run(AttentionOp& op, DataType type, const Case& c) {
  const Array qkv(type, c.qkv), dy(type, c.dy);
  Array y(type, std::ssize(c.dy)), dqkv(type, std::ssize(c.qkv));
  op.forward(c.samples, qkv.data(), y.data());
  op.backward(c.samples, qkv.data(), y.data(), dy.data(), dqkv.data());
  return {y.floats(), dqkv.floats()};
}

class Attention : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<AttentionOp> make(const AttentionShape& shape, std::int64_t samples,
                                    DataType type = DataType::kFloat32) {
    return must(backend(GetParam())->attention(shape, {samples, type}));
  }
};

TEST_P(Attention, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("attention")) {
    const Case input{{integer_of(c, "length"), integer_of(c, "heads"), integer_of(c, "width")},
                     integer_of(c, "samples"),
                     floats_of(c, "qkv"),
                     floats_of(c, "dy")};
    auto op = make(input.shape, input.samples);
    const Outcome found = run(*op, DataType::kFloat32, input);
    expect_close(found.y, floats_of(c, "y"), 2e-6, "y");
    expect_close(found.dqkv, floats_of(c, "dqkv"), 2e-6, "dqkv");
  }
}

TEST_P(Attention, GradientsAreTheDerivatives) {
  Case c = random_case({5, 2, 3}, 2);
  auto op = make(c.shape, c.samples);
  const Outcome result = run(*op, DataType::kFloat32, c);
  const auto f = [&] { return dot(run(*op, DataType::kFloat32, c).y, c.dy); };
  expect_gradient(f, c.qkv.data(), result.dqkv, 1.0F / 64, 1e-3, "dqkv");
}

// Shapes on both sides of the fast backend's block size.
TEST_P(Attention, AgreesWithTheReferenceInEveryType) {
  for (const DataType type : kTypes) {
    for (const AttentionShape& shape : {AttentionShape{16, 2, 16},
                                        {15, 3, 8},
                                        {40, 1, 5},
                                        {65, 2, 32},
                                        {37, 1, 100},
                                        {19, 2, 200}}) {
      const Case c = random_case(shape, 3);
      auto op = made_if_typed(GetParam(), type, backend(GetParam())->attention(shape, {3, type}));
      if (op == nullptr) continue;
      auto reference = must(backend("reference")->attention(shape, {3, DataType::kFloat32}));
      const Outcome found = run(*op, type, c);
      const Outcome expected = run(*reference, DataType::kFloat32, c);
      const double tolerance = type == DataType::kFloat32 ? 2e-6 : 2e-2;
      expect_close(found.y, expected.y, tolerance, "y");
      expect_close(found.dqkv, expected.dqkv, tolerance, "dqkv");
    }
  }
}

// Holds also for an object that has seen a longer sample before.
TEST_P(Attention, ATokenSeesOnlyEarlierTokens) {
  const Case whole = random_case({20, 2, 4}, 1);
  auto op = make(whole.shape, 1);
  const Floats before = run(*op, DataType::kFloat32, whole).y;
  Case changed = whole;
  const std::int64_t first = 13 * 3 * whole.shape.channels();
  for (std::size_t i = static_cast<std::size_t>(first); i < changed.qkv.size(); ++i) {
    changed.qkv[i] = 5;
  }
  const Floats after = run(*op, DataType::kFloat32, changed).y;
  const auto seen = 13 * whole.shape.channels();
  EXPECT_EQ(Floats(before.begin(), before.begin() + seen),
            Floats(after.begin(), after.begin() + seen));
  EXPECT_NE(before.back(), after.back());
}

TEST_P(Attention, GivesTheSameBitsForTheSameBatch) {
  const Case c = random_case({50, 3, 24}, 2);
  for (const DataType type : kTypes) {  // a GPU uses another library's engine in 16 bits
    const PlanOptions plan{.max_samples = 2, .type = type, .deterministic = true};
    auto op = made_if_typed(GetParam(), type, backend(GetParam())->attention(c.shape, plan));
    if (op == nullptr) continue;
    const Outcome first = run(*op, type, c);
    const Outcome second = run(*op, type, c);
    EXPECT_EQ(first.y, second.y);
    EXPECT_EQ(first.dqkv, second.dqkv);
  }
}

TEST_P(Attention, LargeScoresDoNotOverflow) {
  Case c = random_case({18, 1, 4}, 1);
  for (float& value : c.qkv) value *= 1000;
  auto op = make(c.shape, 1);
  auto reference = must(backend("reference")->attention(c.shape, {1, DataType::kFloat32}));
  expect_close(run(*op, DataType::kFloat32, c).y, run(*reference, DataType::kFloat32, c).y, 1e-4,
               "y");
}

TEST_P(Attention, RefusesNoHeads) {
  const auto made = backend(GetParam())->attention({4, 0, 2}, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("heads is 0"));
}

INSTANTIATE_TEST_SUITE_P(, Attention, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
