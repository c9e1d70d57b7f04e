// GELU of every backend: against PyTorch and finite differences.
#include <cmath>
#include <limits>

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Outcome {
  Floats y, dx;
};

Outcome run(GeluOp& op, DataType type, const Floats& x_floats, const Floats& dy_floats) {
  const auto count = static_cast<std::int64_t>(x_floats.size());
  const Array x(type, x_floats), dy(type, dy_floats);
  Array y(type, count), dx(type, count);
  op.forward(count, x.data(), y.data());
  op.backward(count, x.data(), dy.data(), dx.data());
  return {y.floats(), dx.floats()};
}

class Gelu : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<GeluOp> make(GeluForm form, std::int64_t count, DataType type) const {
    return backend(GetParam())->gelu(form, count, type);
  }
};

TEST_P(Gelu, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("gelu")) {
    const GeluForm form =
        c.find("approximate")->as_string() == "tanh" ? GeluForm::kTanh : GeluForm::kExact;
    const Floats x = floats_of(c, "x");
    auto op = make(form, static_cast<std::int64_t>(x.size()), DataType::kFloat32);
    const Outcome found = run(*op, DataType::kFloat32, x, floats_of(c, "dy"));
    expect_close(found.y, floats_of(c, "y"), 1e-6, "y");
    expect_close(found.dx, floats_of(c, "dx"), 1e-6, "dx");
  }
}

TEST_P(Gelu, GradientIsTheDerivative) {
  for (const GeluForm form : {GeluForm::kExact, GeluForm::kTanh}) {
    auto op = make(form, 50, DataType::kFloat32);
    Floats x = random_floats(50, 1);
    const Floats dy = random_floats(50, 2);
    const Floats dx = run(*op, DataType::kFloat32, x, dy).dx;
    const auto f = [&] { return dot(run(*op, DataType::kFloat32, x, dy).y, dy); };
    expect_gradient(f, x.data(), dx, 1.0F / 256, 1e-3, "dx");
  }
}

TEST_P(Gelu, IsZeroFarBelowZeroAndTheIdentityFarAbove) {
  for (const GeluForm form : {GeluForm::kExact, GeluForm::kTanh}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      auto op = make(form, 4, type);
      const Outcome found = run(*op, type, {-100, 0, 64, 128}, {1, 1, 1, 1});
      EXPECT_THAT(found.y, ::testing::ElementsAre(0, 0, 64, 128));
      EXPECT_THAT(found.dx, ::testing::ElementsAre(0, 0.5F, 1, 1));
    }
  }
}

TEST_P(Gelu, WorksInPlace) {
  for (const GeluForm form : {GeluForm::kExact, GeluForm::kTanh}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      constexpr std::int64_t kCount = 1025;
      const Floats x_floats = random_floats(kCount, 1), dy_floats = random_floats(kCount, 2);
      auto op = make(form, kCount, type);
      const Outcome expected = run(*op, type, x_floats, dy_floats);
      Array x(type, x_floats), gradient(type, dy_floats);
      op->backward(kCount, x.data(), gradient.data(), gradient.data());
      op->forward(kCount, x.data(), x.data());
      EXPECT_EQ(x.floats(), expected.y);
      EXPECT_EQ(gradient.floats(), expected.dx);
    }
  }
}

TEST_P(Gelu, PassesNaNOn) {
  const Floats nan(3, std::numeric_limits<float>::quiet_NaN());
  for (const GeluForm form : {GeluForm::kExact, GeluForm::kTanh}) {
    auto op = make(form, 3, DataType::kFloat32);
    const Outcome found = run(*op, DataType::kFloat32, nan, {1, 1, 1});
    for (const float y : found.y) EXPECT_TRUE(std::isnan(y));
    for (const float dx : found.dx) EXPECT_TRUE(std::isnan(dx));
  }
}

// Sizes around vectors, warps and blocks.
TEST_P(Gelu, AgreesWithTheReferenceAtEverySize) {
  for (const GeluForm form : {GeluForm::kExact, GeluForm::kTanh}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      for (const std::int64_t count : {1, 7, 31, 33, 1023, 1025}) {
        const Floats x = random_floats(count, 1), dy = random_floats(count, 2);
        const Outcome found = run(*make(form, count, type), type, x, dy);
        auto reference = backend("reference")->gelu(form, count, type);
        const Outcome expected = run(*reference, type, x, dy);
        const double tolerance = type == DataType::kFloat32 ? 1e-6 : 1e-2;
        expect_close(found.y, expected.y, tolerance, "y");
        expect_close(found.dx, expected.dx, tolerance, "dx");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Gelu, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
