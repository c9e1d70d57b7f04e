// The emulator: what a kernel does there is what it would do on a GPU, and what a GPU would not
// forgive is seen.
#include "kernels/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/reduce.h"

namespace fettle::kernels::cuda {
namespace {

__global__ void fill(float* out, float value) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = value + static_cast<float>(threadIdx.x);
}

__global__ void sum_block(const float* in, float* out) {
  const float sum = block_sum(in[threadIdx.x]);
  out[threadIdx.x] = sum;
}

TEST(Emulator, RunsEveryThreadOfEveryBlock) {
  std::vector<float> out(6);
  launch(nullptr, {.blocks = 2, .threads = 3}, fill, out.data(), 1.0F);
  EXPECT_THAT(out, ::testing::ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST(Emulator, SumsOverABlock) {
  std::vector<float> in(256, 1), out(256);
  launch(nullptr, {}, sum_block, in.data(), out.data());
  EXPECT_THAT(out, ::testing::Each(256));
}

}  // namespace
}  // namespace fettle::kernels::cuda
