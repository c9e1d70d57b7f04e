// Operations that sum over rows: the same batch gives the same bits, in whatever order threads and
// blocks run. A forgotten barrier, or a sum in an undefined order, shows here.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/emulator/emulator.h"

namespace fettle::kernels {
namespace {

using Floats = std::vector<float>;

// Numbers of all magnitudes, so that another order gives another sum.
Floats random_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

Floats norm(cuda::Device& device) {
  constexpr std::int64_t kRows = 9;
  Floats all;
  for (const std::int64_t channels : {5, 40, 1200, 2500, 4100}) {
    const RowNormShape shape{RowNormKind::kLayer, {1, 1, channels}, 1e-5F};
    auto op = cuda_row_norm(device, shape, {kRows, DataType::kFloat32});
    const Floats x = random_floats(kRows * channels, 1), dy = random_floats(kRows * channels, 2);
    const Floats scale = random_floats(channels, 3), shift = random_floats(channels, 4);
    Floats y(x.size()), dx(x.size()), dscale(scale.size()), dshift(scale.size());
    op.value()->forward(kRows, x.data(), scale.data(), shift.data(), y.data());
    op.value()->backward(kRows, x.data(), dy.data(), scale.data(), dx.data(), false, dscale.data(),
                         dshift.data());
    Floats sum = dy, of_sum(x.size());  // y of the sum, and dx added to the first
    op.value()->forward_sum(kRows, x.data(), sum.data(), sum.data(), scale.data(), shift.data(),
                            of_sum.data());
    op.value()->backward(kRows, sum.data(), dy.data(), scale.data(), dx.data(), true, dscale.data(),
                         dshift.data());
    for (const Floats& part : {y, sum, of_sum, dx, dscale, dshift})
      all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Trains at the end of a block, and goes backward. Uses more samples than rows in a block.
Floats batch_norm(cuda::Device& device) {
  constexpr std::int64_t kSamples = 70;
  Floats all;
  for (const std::int64_t channels : {5, 40}) {
    const BatchNormShape shape{{5, 3, channels}, 1e-5F, 0.1F, false};
    auto op = cuda_batch_norm(device, shape, {kSamples, DataType::kFloat32});
    const std::int64_t count = kSamples * shape.input.size();
    const Floats x = random_floats(count, 1), dy = random_floats(count, 2);
    const Floats shortcut = random_floats(count, 3);
    const Floats scale = random_floats(channels, 4), shift = random_floats(channels, 5);
    Floats mean(scale.size()), variance(scale.size()), dscale(scale.size()), dshift(scale.size());
    Floats y(x.size()), dx(x.size());
    op.value()->forward_training(kSamples, x.data(), scale.data(), shift.data(), mean.data(),
                                 variance.data(), y.data(), {shortcut.data(), true});
    op.value()->backward(kSamples, x.data(), nullptr, Floats(dy).data(), scale.data(), dx.data(),
                         dscale.data(), dshift.data());
    Floats masked = dy;
    op.value()->backward_end(kSamples, x.data(), y.data(), masked.data(), shortcut.data(),
                             scale.data(), dx.data(), dscale.data(), dshift.data());
    for (const Floats& part : {y, masked, dx, dscale, dshift, mean, variance})
      all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Floats loss(cuda::Device& device) {
  constexpr std::int64_t kSamples = 9;
  Floats all;
  for (const std::int64_t classes : {7, 65, 1500}) {
    auto op = cuda_softmax_cross_entropy(device, classes, DataType::kFloat32);
    const Floats z = random_floats(kSamples * classes, 1);
    const std::vector<std::int32_t> labels(kSamples, 3);
    Floats dz(z.size());
    LossSums sums;
    op->run(kSamples, z.data(), labels.data(), {0.1F, nullptr}, &sums, dz.data());
    all.insert(all.end(), dz.begin(), dz.end());
    all.push_back(static_cast<float>(sums.loss));
  }
  return all;
}

Floats embedding(cuda::Device& device) {
  constexpr std::int64_t kSamples = 3, kLength = 100, kVocabulary = 65, kChannels = 12;
  auto op =
      cuda_embedding(device, {kVocabulary, kLength, kChannels}, {kSamples, DataType::kFloat32});
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < kSamples * kLength; ++i) tokens.push_back(i % 3 == 0 ? 7 : i % 65);
  const Floats dy = random_floats(kSamples * kLength * kChannels, 1);
  Floats table(kVocabulary * kChannels), positions(kLength * kChannels);
  op.value()->backward(kSamples, tokens.data(), dy.data(), table.data(), positions.data());
  table.insert(table.end(), positions.begin(), positions.end());
  return table;
}

Floats pool(cuda::Device& device) {
  constexpr std::int64_t kSamples = 2;
  const PoolShape shape{PoolKind::kAverage, {7, 6, 5}, 3, 3, 1};
  auto op = cuda_pool(device, shape, {kSamples, DataType::kFloat32});
  const Floats dy = random_floats(kSamples * shape.output().size(), 1);
  Floats dx(static_cast<std::size_t>(kSamples * shape.input.size()));
  op.value()->backward(kSamples, nullptr, nullptr, dy.data(), dx.data());
  return dx;
}

struct Case {
  const char* name;
  std::function<Floats(cuda::Device&)> outcome;
};

class EveryOrderOfThreads : public ::testing::TestWithParam<Case> {};

TEST_P(EveryOrderOfThreads, GivesTheSameBits) {
  auto device = cuda::Device::open();
  ASSERT_TRUE(device.ok());
  emulator::set_order(emulator::Order::kRising);
  const Floats expected = GetParam().outcome(*device.value());
  emulator::set_order(emulator::Order::kFalling);
  EXPECT_EQ(GetParam().outcome(*device.value()), expected);
  for (const std::uint64_t seed : {1, 2}) {
    for (const auto order : {emulator::Order::kShuffled, emulator::Order::kInterleaved}) {
      emulator::set_order(order, seed);
      EXPECT_EQ(GetParam().outcome(*device.value()), expected);
    }
  }
  emulator::set_order(emulator::Order::kRising);
}

INSTANTIATE_TEST_SUITE_P(, EveryOrderOfThreads,
                         ::testing::Values(Case{"norm", norm}, Case{"batch_norm", batch_norm},
                                           Case{"loss", loss}, Case{"embedding", embedding},
                                           Case{"pool", pool}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace fettle::kernels
