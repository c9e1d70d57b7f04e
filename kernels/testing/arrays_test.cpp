// Types that tests of operations may skip: a type that a CPU lacks, and none on a GPU.
#include "kernels/testing/arrays.h"

#include <gtest/gtest-spi.h>

namespace fettle::kernels::testing {
namespace {

using Made = Result<std::unique_ptr<int>>;

TEST(MadeIfTyped, SkipsTypesThatACpuLacks) {
  EXPECT_EQ(made_if_typed("onednn", DataType::kFloat16, Made(invalid("no fp16"))), nullptr);
  EXPECT_EQ(*made_if_typed("onednn", DataType::kFloat16, Made(std::make_unique<int>(7))), 7);
}

TEST(MadeIfTyped, FailsWhereALibraryOnAGpuRefuses) {
  EXPECT_NONFATAL_FAILURE(
      made_if_typed("cuda", DataType::kBFloat16, Made(invalid("cuDNN has no plan"))),
      "cuda: cuDNN has no plan");
  EXPECT_NONFATAL_FAILURE(made_if_typed("onednn", DataType::kFloat32, Made(invalid("no shape"))),
                          "onednn: no shape");
}

}  // namespace
}  // namespace fettle::kernels::testing
