// Passes over the arrays of kernels that are bound by bytes. The docs claim these numbers, and an
// extra pass changes no result, so only counting shows it.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/emulator/emulator.h"

namespace fettle::kernels {
namespace {

constexpr DataType kType = DataType::kBFloat16;
constexpr std::int64_t kSamples = 40, kChannels = 64;
const BatchNormShape kShape{{7, 5, kChannels}, 1e-5F, 0.1F, false};
const std::int64_t kCount = kSamples * kShape.input.size();

// Operands of the operations; their contents do not matter.
struct Arrays {
  using Bits = std::vector<std::uint16_t>;
  Bits x = Bits(kCount), y = Bits(kCount), dy = Bits(kCount), other = Bits(kCount),
       dx = Bits(kCount);
  std::vector<float> scale = std::vector<float>(kChannels), shift = scale, mean = scale,
                     variance = scale, dscale = scale, dshift = scale;
};

struct Passes {
  double read, written;
};

// Counts the passes of the work that `work` enqueues, over arrays of kCount.
Passes passes_of(const std::function<void()>& work) {
  const double kPass = static_cast<double>(kCount) * sizeof(std::uint16_t);
  emulator::traffic = {};
  work();
  return {static_cast<double>(emulator::traffic.read) / kPass,
          static_cast<double>(emulator::traffic.written) / kPass};
}

struct Case {
  const char* what;
  double read, written;
  std::function<void(Arrays&)> work;
};

void expect_passes(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Arrays arrays;
    const Passes found = passes_of([&] { c.work(arrays); });
    EXPECT_EQ(found.read, c.read);
    EXPECT_EQ(found.written, c.written);
  }
}

TEST(Traffic, OfBatchNormMatchesItsHeader) {
  auto device = std::move(cuda::Device::open()).value();
  auto op = std::move(cuda_batch_norm(*device, kShape, {kSamples, kType})).value();
  const auto relu = cuda_relu(*device, kType);
  const auto train = [&](Arrays& a, const BlockEnd& end) {
    op->forward_training(kSamples, a.x.data(), a.scale.data(), a.shift.data(), a.mean.data(),
                         a.variance.data(), a.y.data(), end);
  };
  const auto backward = [&](Arrays& a) {
    op->backward(kSamples, a.x.data(), nullptr, a.dy.data(), a.scale.data(), a.dx.data(),
                 a.dscale.data(), a.dshift.data());
  };
  const auto backward_end = [&](Arrays& a, ConstBuffer y, ConstBuffer other) {
    op->backward_end(kSamples, a.x.data(), y, a.dy.data(), other, a.scale.data(), a.dx.data(),
                     a.dscale.data(), a.dshift.data());
  };
  expect_passes({
      {"training", 2, 1, [&](Arrays& a) { train(a, {}); }},
      {"training, end of a block", 3, 1,
       [&](Arrays& a) {
         train(a, {a.other.data(), true});
       }},
      {"backward", 4, 1, backward},
      {"backward, end of a block", 6, 2,
       [&](Arrays& a) { backward_end(a, a.y.data(), a.other.data()); }},
      {"backward, end of a block, one part", 5, 2,
       [&](Arrays& a) { backward_end(a, a.y.data(), nullptr); }},
      {"backward, end of a block without ReLU", 5, 2,
       [&](Arrays& a) { backward_end(a, nullptr, a.other.data()); }},
      {"the same by three operations", 8, 3,
       [&](Arrays& a) {
         cuda_add(*device, kType, kCount, a.dy.data(), a.other.data(), a.dy.data(), false);
         relu->backward(kCount, a.y.data(), a.dy.data(), a.dy.data());
         backward(a);
       }},
  });
}

}  // namespace
}  // namespace fettle::kernels
