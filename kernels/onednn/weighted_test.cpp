// oneDNN's inner product against the reference, even if linear/choice.h would not choose it:
// without AMX no layer in bf16 takes it. Also the kind of processor that oneDNN sees, which
// DNNL_MAX_CPU_ISA lessens (CMakeLists.txt runs this with several values).
#include "kernels/onednn/weighted.h"

#include <cstdlib>
#include <string_view>

#include "kernels/shapes.h"
#include "kernels/testing/weighted.h"

namespace fettle::kernels::testing {
namespace {

TEST(OnednnLinear, AgreesWithTheReference) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
    if (type == DataType::kBFloat16 && !has_bfloat16(onednn_cpu())) continue;
    for (const auto& [inputs, outputs] : {std::pair{784, 100}, {17, 3}, {512, 512}}) {
      for (const bool bias : {true, false}) {
        const LinearShape shape{inputs, outputs, bias, /*relu=*/bias};
        auto op = must(onednn_linear(shape, {128, type}));
        auto reference = must(backend("reference")->linear(shape, {128, type}));
        for (const std::int64_t samples : {128, 1, 33}) {
          const WeightedInput input = random_input(samples, inputs, outputs, inputs, outputs);
          expect_close(run(*op, type, input), run(*reference, type, input),
                       type == DataType::kFloat32 ? 2e-6 : 1e-2,
                       describe(shape, {128, type}, samples));
        }
      }
    }
  }
}

TEST(OnednnCpu, IsNoMoreThanItIsToldToBe) {
  const char* const set = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string_view told = set == nullptr ? "" : set;
  if (told == "AVX2") {
    EXPECT_EQ(onednn_cpu(), CpuKind::kOther);
  } else if (told == "AVX512_CORE") {
    EXPECT_LE(onednn_cpu(), CpuKind::kAvx512);
  } else {
    GTEST_SKIP() << "DNNL_MAX_CPU_ISA is neither AVX2 nor AVX512_CORE";
  }
}

}  // namespace
}  // namespace fettle::kernels::testing
