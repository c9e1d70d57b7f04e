// A forward pass stores the log-sum-exp of each query's scores at a given address, and another
// operation's backward pass continues from there, so that one pass may be the library's and the
// other ours (cudnn_attention.cpp). On the emulator.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cuda/operations.h"

namespace fettle::kernels {
namespace {

constexpr AttentionShape kShape{9, 2, 4};
constexpr std::int64_t kSamples = 3;
constexpr std::int64_t kCount = kSamples * 9 * 2 * 4;
constexpr PlanOptions kPlan{kSamples};

std::vector<float> numbers(std::int64_t count, float phase) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(phase * static_cast<float>(i)));
  return values;
}

TEST(OwnAttention, BackwardUsesTheLogSumsOfAnotherForward) {
  const auto device = std::move(cuda::Device::open()).value();
  std::vector<float> log_sums(static_cast<std::size_t>(kSamples * 9 * 2));
  const auto alone = std::move(own_attention(*device, kShape, kPlan)).value();
  const auto forward = std::move(own_attention(*device, kShape, kPlan, log_sums.data())).value();
  const auto backward = std::move(own_attention(*device, kShape, kPlan, log_sums.data())).value();
  const std::vector<float> qkv = numbers(3 * kCount, 0.7F), dy = numbers(kCount, 1.3F);
  std::vector<float> y(kCount), same_y(kCount), dqkv(3 * kCount), same_dqkv(3 * kCount);
  alone->forward(kSamples, qkv.data(), y.data());
  alone->backward(kSamples, qkv.data(), y.data(), dy.data(), dqkv.data());
  forward->forward(kSamples, qkv.data(), same_y.data());
  backward->backward(kSamples, qkv.data(), same_y.data(), dy.data(), same_dqkv.data());
  EXPECT_EQ(same_y, y);
  EXPECT_EQ(same_dqkv, dqkv);
  // The first token sees only itself: its only score is its log-sum.
  float score = 0;
  for (int c = 0; c < 4; ++c)
    score += qkv[static_cast<std::size_t>(c)] * qkv[static_cast<std::size_t>(8 + c)];
  EXPECT_NEAR(log_sums[0], score / std::sqrt(4.0F), 1e-6);
}

}  // namespace
}  // namespace fettle::kernels
