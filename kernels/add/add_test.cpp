// Addition of every backend, in place and not.
#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

class Add : public ::testing::TestWithParam<std::string> {};

TEST_P(Add, AddsInEveryType) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    const Array a(type, Floats{1, -2, 0.5F, 100}), b(type, Floats{3, 2, 0.25F, -1});
    Array y(type, 4);
    backend(GetParam())->add(type, 4, a.data(), b.data(), y.data());
    EXPECT_THAT(y.floats(), ::testing::ElementsAre(4, 0, 0.75F, 99));
  }
}

TEST_P(Add, MayWriteOverASummand) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    const Floats first = random_floats(77, 1), second = random_floats(77, 2);
    Array a(type, first), b(type, second), y(type, 77);
    const auto tested = backend(GetParam());
    tested->add(type, 77, a.data(), b.data(), y.data());
    tested->add(type, 77, a.data(), b.data(), a.data());
    EXPECT_EQ(a.floats(), y.floats());
    for (std::size_t i = 0; i < 77; ++i) EXPECT_NEAR(y.floats()[i], first[i] + second[i], 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(, Add, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
