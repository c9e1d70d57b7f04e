#include "kernels/backends/cuda/workloads.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/philox.h"
#include "kernels/add/cuda.h"
#include "kernels/cast/cuda.h"
#include "kernels/conv/add_bias.h"
#include "kernels/cuda/errors.h"
#include "kernels/dropout/cuda.h"
#include "kernels/embedding/cuda.h"
#include "kernels/gather/cuda.h"
#include "kernels/gelu/cuda.h"
#include "kernels/linear/add_slices.h"
#include "kernels/optimizer/cuda.h"
#include "kernels/pool/cuda.h"
#include "kernels/relu/cuda.h"

namespace fettle::kernels::cuda {
namespace {

constexpr DataType kType = DataType::kBFloat16;
constexpr std::int64_t kPattern = 1 << 16;  // values, after which an array begins anew

// Puts a Workload together. The first error is kept, and what follows it does nothing: a workload
// is a dozen arrays, each of which may be the one too many.
class Builder {
 public:
  Builder(Device& device, std::int64_t elements) : device_(device), elements_(elements) {}

  Device& device() { return device_; }
  std::int64_t elements() const { return elements_; }
  // Whole samples of so many elements.
  std::int64_t samples_of(std::int64_t size) const {
    return std::max<std::int64_t>(elements_ / size, 1);
  }

  // An array of zeros.
  template <class T>
  T* zeros(std::int64_t count) {
    return static_cast<T*>(allocate(count * std::int64_t{sizeof(T)}));
  }
  // An array of what value(draws) gives.
  template <class T, class Value>
  T* array(std::int64_t count, Value value) {
    Random draws(1, work_.memory.size());
    std::vector<T> pattern(static_cast<std::size_t>(std::min(count, kPattern)));
    for (T& item : pattern) item = static_cast<T>(value(draws));
    T* const made = zeros<T>(count);
    if (made != nullptr)
      repeat(pattern.data(), pattern.size() * sizeof(T), made, count * sizeof(T));
    return made;
  }
  // In [-1, 1).
  float* floats(std::int64_t count) {
    return array<float>(count, [](Random& draws) { return 2 * draws.uniform() - 1; });
  }
  // bf16, of either sign, 2^-7 to 2.
  std::uint16_t* halves(std::int64_t count) {
    return array<std::uint16_t>(count, [](Random& draws) {
      const std::uint32_t bits = draws.bits32();
      return (bits & 0x8000U) | (0x3C00U + (bits & 0x03FFU));
    });
  }
  template <class T>
  T* below(std::int64_t count, std::int64_t limit) {
    return array<T>(
        count, [limit](Random& draws) { return draws.below(static_cast<std::uint64_t>(limit)); });
  }
  template <class T>
  T* one(const T& value) {
    T* const made = zeros<T>(1);
    if (made != nullptr) upload(&value, sizeof value, made);
    return made;
  }
  template <class Op>
  std::shared_ptr<Op> keep(Result<std::unique_ptr<Op>> made) {
    if (made.ok()) return std::move(made).value();
    if (failed_.ok()) failed_ = made.error();
    return nullptr;
  }

  bool ok() const { return failed_.ok(); }
  // `run` is never called if something has failed.
  Result<Workload> finish(std::function<void()> run, ConstBuffer written, std::int64_t bytes) {
    FETTLE_TRY(failed_);
    work_.run = std::move(run);
    work_.written = written;
    work_.written_bytes = bytes;
    return std::move(work_);
  }

 private:
  void* allocate(std::int64_t bytes) {
    if (!failed_.ok()) return nullptr;
    auto memory = device_.allocate(bytes);
    if (!memory.ok()) {
      failed_ = memory.error();
      return nullptr;
    }
    work_.memory.push_back(std::move(memory).value());
    return work_.memory.back()->data();
  }
  void upload(const void* from, std::size_t bytes, void* to) {
    must_succeed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device_.stream()));
    must_succeed(cudaStreamSynchronize(device_.stream()));
  }
  // Doubles what is there until all of it is.
  void repeat(const void* pattern, std::size_t bytes, void* to, std::size_t all) {
    upload(pattern, bytes, to);
    for (std::size_t done = bytes; done < all; done *= 2) {
      must_succeed(cudaMemcpyAsync(static_cast<char*>(to) + done, to, std::min(done, all - done),
                                   cudaMemcpyDeviceToDevice, device_.stream()));
    }
  }

  Device& device_;
  const std::int64_t elements_;
  Workload work_;
  Status failed_ = success();
};

// ---- Element by element ------------------------------------------------------------------------

Result<Workload> add(Builder& make) {
  const std::int64_t count = make.elements();
  auto *a = make.halves(count), *b = make.halves(count), *y = make.zeros<std::uint16_t>(count);
  return make.finish(
      [=, &device = make.device()] { cuda_add(device, kType, count, a, b, y, false); }, y,
      2 * count);
}

Result<Workload> add_scaled(Builder& make) {
  const std::int64_t count = make.elements();
  auto *x = make.floats(count), *y = make.floats(count);
  return make.finish([=, &device = make.device()] { cuda_add_scaled(device, count, 0.5F, x, y); },
                     y, 4 * count);
}

Result<Workload> round(Builder& make) {
  const std::int64_t count = make.elements();
  auto* from = make.floats(count);
  auto* to = make.zeros<std::uint16_t>(count);
  return make.finish([=, &device = make.device()] { cuda_round(device, kType, count, from, to); },
                     to, 2 * count);
}

Result<Workload> widen(Builder& make) {
  const std::int64_t count = make.elements();
  auto* from = make.halves(count);
  auto* to = make.zeros<float>(count);
  return make.finish([=, &device = make.device()] { cuda_widen(device, kType, count, from, to); },
                     to, 4 * count);
}

std::shared_ptr<ReluOp> activation(Builder& make, ReluOp*) {
  return make.keep<ReluOp>(cuda_relu(make.device(), kType));
}
std::shared_ptr<GeluOp> activation(Builder& make, GeluOp*) {
  return make.keep<GeluOp>(cuda_gelu(make.device(), GeluForm::kTanh, kType));
}

template <class Op>
Result<Workload> activation_forward(Builder& make) {
  const std::int64_t count = make.elements();
  auto *x = make.halves(count), *y = make.zeros<std::uint16_t>(count);
  const auto op = activation(make, static_cast<Op*>(nullptr));
  return make.finish([=] { op->forward(count, x, y); }, y, 2 * count);
}

template <class Op>
Result<Workload> activation_backward(Builder& make) {
  const std::int64_t count = make.elements();
  auto *x = make.halves(count), *dy = make.halves(count);
  auto* dx = make.zeros<std::uint16_t>(count);
  const auto op = activation(make, static_cast<Op*>(nullptr));
  return make.finish([=] { op->backward(count, x, dy, dx); }, dx, 2 * count);
}

template <bool kForward>
Result<Workload> dropout(Builder& make) {
  constexpr std::int64_t kOfSample = 1024;
  const std::int64_t samples = make.samples_of(kOfSample), count = samples * kOfSample;
  auto* indices = make.below<std::int64_t>(samples, samples);
  const DropoutKey key{1, make.one(std::uint32_t{1}), 1};
  auto *x = make.halves(count), *y = make.zeros<std::uint16_t>(count);
  const auto op = make.keep<DropoutOp>(cuda_dropout(make.device(), 0.1F, kOfSample, kType));
  return make.finish(
      [=] {
        kForward ? op->forward(samples, indices, key, x, y)
                 : op->backward(samples, indices, key, x, y);
      },
      y, 2 * count);
}

// ---- Layers ------------------------------------------------------------------------------------

Result<Workload> add_bias(Builder& make) {
  constexpr std::int64_t kChannels = 64;
  const std::int64_t rows = make.samples_of(kChannels), count = rows * kChannels;
  auto* bias = make.floats(kChannels);
  auto* y = make.halves(count);
  return make.finish(
      [=, &device = make.device()] {
        cuda::add_bias(device, kType, rows, kChannels, bias, true, y);
      },
      y, 2 * count);
}

Result<Workload> add_slices(Builder& make) {
  constexpr int kSlices = 8;
  const std::int64_t count = make.samples_of(kSlices);
  auto *from = make.floats(kSlices * count), *sums = make.floats(count);
  return make.finish(
      [=, &device = make.device()] { cuda::add_slices(device, kSlices, count, from, sums); }, sums,
      4 * count);
}

template <bool kForward>
Result<Workload> pool(Builder& make) {
  const PoolShape shape{.kind = PoolKind::kMax, .input = {16, 16, 64}};
  const std::int64_t samples = make.samples_of(shape.input.size());
  const std::int64_t inputs = samples * shape.input.size();
  const std::int64_t outputs = samples * shape.output().size();
  auto *x = make.halves(inputs), *dy = make.halves(outputs);
  auto *y = make.zeros<std::uint16_t>(outputs), *dx = make.zeros<std::uint16_t>(inputs);
  const auto op = make.keep(cuda_pool(make.device(), shape, {samples, kType}));
  if (kForward) return make.finish([=] { op->forward(samples, x, y); }, y, 2 * outputs);
  if (make.ok()) op->forward(samples, x, y);  // it remembers which inputs were the largest
  return make.finish([=] { op->backward(samples, x, y, dy, dx); }, dx, 2 * inputs);
}

struct Text {
  static constexpr EmbeddingShape kShape{.vocabulary = 1024, .length = 64, .channels = 256};
  static constexpr std::int64_t kTable = kShape.vocabulary * kShape.channels;
  static constexpr std::int64_t kPositions = kShape.length * kShape.channels;

  explicit Text(Builder& make)
      : samples(make.samples_of(kPositions)),
        tokens(make.below<std::int32_t>(samples * kShape.length, kShape.vocabulary)),
        op(make.keep(cuda_embedding(make.device(), kShape, {samples, kType}))) {}

  std::int64_t samples;
  std::int32_t* tokens;
  std::shared_ptr<EmbeddingOp> op;
};

Result<Workload> embedding_forward(Builder& make) {
  const Text text(make);
  auto *table = make.halves(Text::kTable), *positions = make.halves(Text::kPositions);
  const std::int64_t count = text.samples * Text::kPositions;
  auto* y = make.zeros<std::uint16_t>(count);
  return make.finish([=] { text.op->forward(text.samples, text.tokens, table, positions, y); }, y,
                     2 * count);
}

Result<Workload> embedding_backward(Builder& make) {
  const Text text(make);
  auto* dy = make.halves(text.samples * Text::kPositions);
  auto* gradients = make.zeros<float>(Text::kTable + Text::kPositions);
  return make.finish(
      [=] {
        text.op->backward(text.samples, text.tokens, dy, gradients, gradients + Text::kTable);
      },
      gradients, 4 * (Text::kTable + Text::kPositions));
}

// ---- Data and optimisers -----------------------------------------------------------------------

Result<Workload> gather(Builder& make) {
  const ImageShape shape{32, 32, 3};
  const std::int64_t samples = make.samples_of(shape.size()), count = samples * shape.size();
  auto* pixels = make.below<std::uint8_t>(count, 256);
  auto* labels = make.below<std::int32_t>(samples, 10);
  const Samples all{PixelType::kByte, shape, pixels, labels};
  const ImageLook look{.mean = 0.5, .deviation = 0.25, .flip = true, .shift = 4, .seed = 1};
  auto* indices = make.below<std::int64_t>(samples, samples);
  auto* epoch = make.one(std::uint32_t{1});
  auto* x = make.zeros<std::uint16_t>(count);
  auto* chosen = make.zeros<std::int32_t>(samples);
  const auto op = make.keep(cuda_gather(make.device(), all, look, {samples, kType}));
  return make.finish([=] { op->run(samples, indices, epoch, x, chosen); }, x, 2 * count);
}

template <UpdateRule kRule>
Result<Workload> update(Builder& make) {
  StepControl step;
  step.learning_rate = 1e-3F;
  step.apply = 1;
  step.updates = 1;
  const auto* control = make.one(step);
  UpdateBuffers all;
  all.count = make.elements();
  all.weights = make.floats(all.count);
  all.gradient = make.floats(all.count);
  all.state1 = make.zeros<float>(all.count);
  all.state2 = make.zeros<float>(all.count);
  all.rounded = make.zeros<std::uint16_t>(all.count);
  all.weight_decay = 0.01F;
  if (!make.ok()) return make.finish({}, nullptr, 0);
  const auto op = make.keep(cuda_update(make.device(), kRule, {all}, {}));
  return make.finish([=] { op->run(control); }, all.weights, 4 * all.count);
}

struct Kind {
  std::string_view kernel;
  Result<Workload> (*make)(Builder&);
};
constexpr std::array<Kind, 19> kKinds{{
    {"add/add", add},
    {"add/add_scaled", add_scaled},
    {"cast/round", round},
    {"cast/widen", widen},
    {"conv/add_bias", add_bias},
    {"dropout/backward", dropout<false>},
    {"dropout/forward", dropout<true>},
    {"embedding/backward", embedding_backward},
    {"embedding/forward", embedding_forward},
    {"gather/gather", gather},
    {"gelu/backward", activation_backward<GeluOp>},
    {"gelu/forward", activation_forward<GeluOp>},
    {"linear/add_slices", add_slices},
    {"optimizer/lamb_weights", update<UpdateRule::kLamb>},
    {"optimizer/update", update<UpdateRule::kAdamW>},
    {"pool/backward", pool<false>},
    {"pool/forward", pool<true>},
    {"relu/backward", activation_backward<ReluOp>},
    {"relu/forward", activation_forward<ReluOp>},
}};

}  // namespace

Result<Workload> make_workload(Device& device, std::string_view kernel, std::int64_t elements) {
  if (elements < 1) {
    return invalid("a kernel is timed on " + std::to_string(elements) +
                   " elements, expected at least 1");
  }
  for (const Kind& kind : kKinds) {
    if (kind.kernel != kernel) continue;
    Builder make(device, elements);
    return kind.make(make);
  }
  return not_found("there is nothing to time " + std::string(kernel) + " on");
}

}  // namespace fettle::kernels::cuda
