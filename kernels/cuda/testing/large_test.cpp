// Operations at the sizes of the benchmarks, on a GPU: offsets beyond 2^31 bytes, grids of millions
// of blocks, and the library's results against our own kernels'. On the emulator the same tests run
// with small sizes.
//
// A large array repeats a block of random numbers, so the host knows its contents. The tests
// compare windows at its beginning, in its middle and at its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kernels/backends/cuda/backend.h"
#include "kernels/bfloat16.h"
#include "kernels/device_array.h"
#include "kernels/testing/arrays.h"
#include "kernels/testing/device.h"

namespace fettle::kernels::testing {
namespace {

using Bits = std::vector<std::uint16_t>;

constexpr DataType kType = DataType::kBFloat16;

// Returns `large` on a GPU, `small` elsewhere.
constexpr std::int64_t size(std::int64_t large, std::int64_t small) {
  return kOnGpu ? large : small;
}

constexpr std::int64_t kBlock = size(1 << 22, 1 << 12);
constexpr std::int64_t kWindow = size(1 << 14, 1 << 8);

std::vector<float> widened(const Bits& bits) {
  std::vector<float> values;
  for (const std::uint16_t value : bits) values.push_back(from_bfloat16(value));
  return values;
}

Bits random_block(std::uint64_t seed, float scale) {
  Bits block;
  for (const float value : random_floats(kBlock, seed)) block.push_back(to_bfloat16(scale * value));
  return block;
}

class Large : public ::testing::Test {
 protected:
  ~Large() override { ::unsetenv("FETTLE_CUDA_OWN"); }

  DeviceArray<std::uint16_t> array(std::int64_t count) {
    return DeviceArray<std::uint16_t>::create(*backend_, count).value();
  }
  DeviceArray<float> floats(std::int64_t count) {
    return DeviceArray<float>::create(*backend_, count).value();
  }

  // Repeats the block.
  DeviceArray<std::uint16_t> repeated(std::int64_t count, const Bits& block) {
    auto made = array(count);
    const std::int64_t first = std::min(count, std::ssize(block));
    made.upload(std::span(block).first(static_cast<std::size_t>(first)));
    for (std::int64_t there = first; there < count; there *= 2) {
      const std::int64_t more = std::min(there, count - there);
      backend_->copy(made.data(), made.data() + there, more * 2);
    }
    return made;
  }

  template <class T>
  std::vector<float> window(const DeviceArray<T>& from, std::int64_t first) {
    std::vector<T> values(static_cast<std::size_t>(std::min(kWindow, from.size())));
    backend_->download(from.data() + first, values.data(),
                       std::ssize(values) * std::int64_t{sizeof(T)});
    if constexpr (std::is_same_v<T, float>) {
      return values;
    } else {
      return widened(values);
    }
  }

  // `tolerance`: relative to the largest number of a window.
  template <class T>
  void expect_close(const DeviceArray<T>& found, const DeviceArray<T>& expected, double tolerance,
                    const char* what) {
    const std::int64_t last = std::max<std::int64_t>(0, found.size() - kWindow);
    for (const std::int64_t first : {std::int64_t{0}, last / 2, last}) {
      SCOPED_TRACE(std::string(what) + " from " + std::to_string(first));
      expect_near(window(found, first), window(expected, first), tolerance);
    }
  }

  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                          double tolerance) {
    ASSERT_EQ(found.size(), expected.size());
    double largest = 1e-3;
    for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], tolerance * largest) << "element " << i;
    }
  }

  // Makes an operation by the library and by our own kernels.
  template <class Make>
  auto both(Make make) {
    auto library = must(make());
    ::setenv("FETTLE_CUDA_OWN", "1", 1);
    auto own = must(make());
    ::unsetenv("FETTLE_CUDA_OWN");
    return std::pair{std::move(library), std::move(own)};
  }

  // Forward and backward of a layer with weights agree between the library and our own kernels.
  struct Layer {
    std::int64_t samples, inputs, outputs, weights;  // numbers of all samples, and of the layer
    float weight_scale;
  };
  void expect_library_agrees(const Layer& layer, WeightedOp& library, WeightedOp& own) {
    const auto x = repeated(layer.inputs, random_block(1, 1));
    const auto w = repeated(layer.weights, random_block(2, layer.weight_scale));
    const auto run = [&](WeightedOp& op) {
      Results results{array(layer.outputs), array(layer.inputs), floats(layer.weights)};
      auto dy = repeated(layer.outputs, random_block(3, 1));
      op.set_weights({w.data(), nullptr, nullptr});
      op.forward(layer.samples, x.data(), results.y.data());
      op.backward(layer.samples, x.data(), nullptr, dy.data(), results.dx.data(), results.dw.data(),
                  nullptr);
      return results;
    };
    const Results found = run(library);
    const Results expected = run(own);
    expect_close(found.y, expected.y, 1e-2, "y");
    expect_close(found.dx, expected.dx, 1e-2, "dx");
    expect_close(found.dw, expected.dw, 1e-2, "dw");
  }

  const std::unique_ptr<Backend> backend_ = must(cuda_backend());

 private:
  struct Results {
    DeviceArray<std::uint16_t> y, dx;
    DeviceArray<float> dw;
  };
};

TEST_F(Large, HeadOfALanguageModel) {
  const std::int64_t samples = size(32768, 40), inputs = size(768, 32), outputs = size(50304, 96);
  const auto [library, own] = both([&] {
    return backend_->linear({inputs, outputs, false}, {samples, kType});
  });
  expect_library_agrees({samples, samples * inputs, samples * outputs, outputs * inputs, 0.05F},
                        *library, *own);
}

TEST_F(Large, ConvolutionOfAResNet) {
  const std::int64_t samples = size(256, 3), side = size(112, 9), channels = size(64, 8);
  const ConvShape shape{{side, side, channels}, channels, 3, 1, 1, false, false};
  const std::int64_t count = samples * side * side * channels;
  const auto [library, own] = both([&] { return backend_->conv(shape, {samples, kType}); });
  expect_library_agrees({samples, count, count, channels * 9 * channels, 0.1F}, *library, *own);
}

TEST_F(Large, AttentionOfGpt2) {
  const std::int64_t samples = size(8, 2);
  const AttentionShape shape{size(1024, 40), size(12, 2), size(64, 16)};
  const std::int64_t count = samples * shape.length * shape.channels();
  const auto qkv = repeated(3 * count, random_block(1, 2));
  const auto dy = repeated(count, random_block(2, 1));
  const PlanOptions plan{.max_samples = samples, .type = kType, .deterministic = true};
  const auto [library, own] = both([&] { return backend_->attention(shape, plan); });
  const auto run = [&](AttentionOp& op) {
    auto y = array(count), dqkv = array(3 * count);
    op.forward(samples, qkv.data(), y.data());
    op.backward(samples, qkv.data(), y.data(), dy.data(), dqkv.data());
    return std::pair{std::move(y), std::move(dqkv)};
  };
  const auto [y, dqkv] = run(*library);
  const auto [expected_y, expected_dqkv] = run(*own);
  expect_close(y, expected_y, 2e-2, "y");
  expect_close(dqkv, expected_dqkv, 3e-2, "dqkv");
}

// A block has whole rows of all channels, so statistics over the whole array equal those of one
// block.
TEST_F(Large, BatchNormOfAResNet) {
  constexpr std::int64_t kChannels = 64;
  const std::int64_t rows = size(256 * 112 * 112, 4 * (kBlock / kChannels));
  const std::int64_t whole = rows / (kBlock / kChannels) * (kBlock / kChannels);
  const Bits block = random_block(1, 3);
  const Floats scale(kChannels, 1.5F), shift(kChannels, -0.25F);
  const auto normalise = [&](Backend& backend, std::int64_t count, ConstBuffer x, Buffer y) {
    auto op = must(backend.batch_norm({{1, 1, kChannels}}, {count, kType}));
    auto factors = on_device(backend, scale), offsets = on_device(backend, shift);
    auto mean = on_device(backend, Floats(kChannels)),
         variance = on_device(backend, Floats(kChannels));
    op->forward_training(count, x, factors.data(), offsets.data(), mean.data(), variance.data(), y,
                         {});
    backend.wait();
  };
  const auto x = repeated(whole * kChannels, block);
  auto y = array(whole * kChannels);
  normalise(*backend_, whole, x.data(), y.data());
  const Array of_block(kType, widened(block));
  Array expected(kType, kBlock);
  normalise(*backend("reference"), kBlock / kChannels, of_block.data(), expected.data());
  const Floats numbers = expected.floats();
  const std::int64_t last = whole * kChannels - kBlock;
  for (const std::int64_t first : {std::int64_t{0}, last}) {
    expect_near(window(y, first), {numbers.begin(), numbers.begin() + kWindow}, 1e-2);
  }
}

// The gradients of scale and shift are sums over 32 k rows.
TEST_F(Large, LayerNormOfALanguageModel) {
  const std::int64_t channels = size(768, 32);
  const std::int64_t rows = size(32768, 64);
  const std::int64_t count = rows * channels;
  const RowNormShape shape{RowNormKind::kLayer, {1, 1, channels}};
  const Bits numbers = random_block(1, 2), gradients = random_block(2, 1);
  const auto x = repeated(count, numbers), dy = repeated(count, gradients);
  auto y = array(count), dx = array(count);
  const Floats scale(static_cast<std::size_t>(channels), 1.5F);
  const Floats shift(static_cast<std::size_t>(channels), 0.25F);
  const auto factors = on_device(*backend_, scale), offsets = on_device(*backend_, shift);
  auto dscale = floats(channels), dshift = floats(channels);
  auto op = must(backend_->row_norm(shape, {rows, kType}));
  op->forward(rows, x.data(), factors.data(), offsets.data(), y.data());
  op->backward(rows, x.data(), dy.data(), factors.data(), dx.data(), false, dscale.data(),
               dshift.data());
  const Array of_x(kType, widened(x.download())), of_dy(kType, widened(dy.download()));
  Array expected_y(kType, count), expected_dx(kType, count);
  Floats expected_dscale(scale.size()), expected_dshift(scale.size());
  auto reference = must(backend("reference")->row_norm(shape, {rows, kType}));
  reference->forward(rows, of_x.data(), scale.data(), shift.data(), expected_y.data());
  reference->backward(rows, of_x.data(), of_dy.data(), scale.data(), expected_dx.data(), false,
                      expected_dscale.data(), expected_dshift.data());
  expect_near(widened(y.download()), expected_y.floats(), 1e-2);
  expect_near(widened(dx.download()), expected_dx.floats(), 1e-2);
  expect_near(dscale.download(), expected_dscale, 1e-4);
  expect_near(dshift.download(), expected_dshift, 1e-4);
}

// Sorting 32 k tokens, with many duplicates, finds every token's rows.
TEST_F(Large, EmbeddingOfALanguageModel) {
  const EmbeddingShape shape{size(50304, 40), size(1024, 12), size(768, 8)};
  const std::int64_t samples = size(32, 3), count = samples * shape.length * shape.channels;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(samples * shape.length));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * i % static_cast<std::size_t>(shape.vocabulary));
  }
  const auto dy = repeated(count, random_block(1, 1));
  const std::int64_t table = shape.vocabulary * shape.channels;
  const std::int64_t positions = shape.length * shape.channels;
  auto dtable = floats(table), dpositions = floats(positions);
  const auto held = on_device(*backend_, tokens);
  must(backend_->embedding(shape, {samples, kType}))
      ->backward(samples, held.data(), dy.data(), dtable.data(), dpositions.data());
  const Array of_dy(kType, widened(dy.download()));
  Floats expected_table(static_cast<std::size_t>(table));
  Floats expected_positions(static_cast<std::size_t>(positions));
  must(backend("reference")->embedding(shape, {samples, kType}))
      ->backward(samples, tokens.data(), of_dy.data(), expected_table.data(),
                 expected_positions.data());
  expect_near(dtable.download(), expected_table, 1e-5);
  expect_near(dpositions.download(), expected_positions, 1e-5);
}

// All parameters of GPT-2 in one part.
TEST_F(Large, UpdateOfALanguageModel) {
  const std::int64_t count = size(124'000'000, 5000);
  Floats values = random_floats(kBlock, 1), gradient = random_floats(kBlock, 2);
  values.resize(static_cast<std::size_t>(count), 0.5F);
  gradient.resize(static_cast<std::size_t>(count), 0.25F);
  auto weights = on_device(*backend_, values);
  const auto gradients = on_device(*backend_, gradient);
  auto first = floats(count), second = floats(count);
  auto rounded = array(count);
  StepControl control;
  control.learning_rate = 0.1F;
  control.apply = 1;
  control.updates = 1;
  const auto held = on_device(*backend_, control);
  UpdateBuffers part{count,        weights.data(), gradients.data(),
                     first.data(), second.data(),  rounded.data()};
  backend_->update(UpdateRule::kAdamW, {part}, {})->run(held.data());
  Floats state1(values.size()), state2(values.size());
  std::vector<std::uint16_t> bits(values.size());
  part = {count, values.data(), gradient.data(), state1.data(), state2.data(), bits.data()};
  backend("reference")->update(UpdateRule::kAdamW, {part}, {})->run(&control);
  const std::int64_t last = count - kWindow;
  for (const std::int64_t from : {std::int64_t{0}, last / 2, last}) {
    const auto at = values.begin() + from;
    expect_near(window(weights, from), {at, at + kWindow}, 1e-6);
  }
}

// As many rows of logits as GPT-2 has, each against the reference's.
TEST_F(Large, LossOfALanguageModel) {
  const std::int64_t samples = size(32768, 24), classes = size(50304, 100);
  const auto logits = repeated(samples * classes, random_block(1, 2));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(samples), 7);
  const auto targets = on_device(*backend_, labels);
  auto dlogits = array(samples * classes);
  auto sums = on_device(*backend_, LossSums());
  const float one = 1;
  auto scale = on_device(*backend_, Floats{one});
  backend_->softmax_cross_entropy(classes, kType)
      ->run(samples, logits.data(), targets.data(), {0, scale.data()}, sums.data(), dlogits.data());
  const auto reference = backend("reference")->softmax_cross_entropy(classes, kType);
  double loss = 0;
  for (const std::int64_t row : {std::int64_t{0}, samples / 2, samples - 1}) {
    SCOPED_TRACE(row);
    Bits bits(static_cast<std::size_t>(classes));
    backend_->download(logits.data() + row * classes, bits.data(), classes * 2);
    const Array z(kType, widened(bits));
    Array expected(kType, classes);
    LossSums of_row;
    reference->run(1, z.data(), labels.data(), {0, &one}, &of_row, expected.data());
    loss = std::max(loss, of_row.loss);
    backend_->download(dlogits.data() + row * classes, bits.data(), classes * 2);
    expect_near(widened(bits), expected.floats(), 1e-2);
  }
  EXPECT_GT(sums.download().front().loss, 0);
  EXPECT_LT(sums.download().front().loss, 2 * loss * static_cast<double>(samples));
}

}  // namespace
}  // namespace fettle::kernels::testing
