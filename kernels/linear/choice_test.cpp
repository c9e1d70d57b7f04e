// The implementation of each linear layer on each kind of processor, as a table. Separate processes
// check that the backend sees the processor that DNNL_MAX_CPU_ISA names.
#include "kernels/linear/choice.h"

#include <gtest/gtest.h>

#include <string>

namespace fettle::kernels {
namespace {

constexpr auto kOurs = LinearBy::kPackedProduct, kOneDnn = LinearBy::kOneDnn;
constexpr auto kFp32 = DataType::kFloat32, kBf16 = DataType::kBFloat16;

struct Row {
  const char* layer;
  std::int64_t inputs, outputs, samples;
  DataType type;
  LinearBy other, avx512, avx512_bf16, amx;
};

// The layers of `make bench`, and small layers. bf16 is refused without AVX-512 BF16.
constexpr Row kTable[] = {
    {"mlp, first", 784, 512, 128, kFp32, kOneDnn, kOurs, kOurs, kOurs},
    {"mlp, first", 784, 512, 128, kBf16, kOneDnn, kOurs, kOurs, kOneDnn},
    {"mlp, middle", 512, 512, 128, kFp32, kOneDnn, kOurs, kOurs, kOurs},
    {"mlp, middle", 512, 512, 128, kBf16, kOneDnn, kOurs, kOurs, kOneDnn},
    {"ten classes", 512, 10, 128, kFp32, kOneDnn, kOurs, kOurs, kOurs},
    {"ten classes", 512, 10, 128, kBf16, kOneDnn, kOurs, kOurs, kOurs},
    {"cnn, head", 3136, 64, 128, kBf16, kOneDnn, kOurs, kOurs, kOneDnn},
    {"one sample", 512, 512, 1, kBf16, kOneDnn, kOurs, kOurs, kOurs},
    {"few inputs", 8, 512, 128, kBf16, kOneDnn, kOurs, kOurs, kOurs},
};

TEST(LinearChoice, IsThatOfTheTable) {
  for (const Row& row : kTable) {
    const LinearShape shape{row.inputs, row.outputs, true, true};
    const PlanOptions plan{row.samples, row.type};
    SCOPED_TRACE(std::string(row.layer) + (row.type == kBf16 ? ", bf16" : ", fp32"));
    EXPECT_EQ(linear_by(CpuKind::kOther, shape, plan), row.other);
    EXPECT_EQ(linear_by(CpuKind::kAvx512, shape, plan), row.avx512);
    EXPECT_EQ(linear_by(CpuKind::kAvx512BFloat16, shape, plan), row.avx512_bf16);
    EXPECT_EQ(linear_by(CpuKind::kAmx, shape, plan), row.amx);
  }
}

TEST(LinearChoice, KnowsTheProcessorsWithBFloat16) {
  EXPECT_FALSE(has_bfloat16(CpuKind::kOther));
  EXPECT_FALSE(has_bfloat16(CpuKind::kAvx512));
  EXPECT_TRUE(has_bfloat16(CpuKind::kAvx512BFloat16));
  EXPECT_TRUE(has_bfloat16(CpuKind::kAmx));
}

}  // namespace
}  // namespace fettle::kernels
