#include "kernels/bench/ladder.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/philox.h"

namespace fettle::kernels::bench {
namespace {

// The work of a call: bytes if it is bound by bytes, else FLOP.
struct Work {
  double flops = 0;
  double bytes = 0;
};

const char* name_of(DataType type) {
  if (type == DataType::kFloat32) return "fp32";
  return type == DataType::kBFloat16 ? "bf16" : "fp16";
}

class Ladder {
 public:
  Ladder(Backend& backend, const LadderOptions& options) : backend_(backend), options_(options) {}

  void linear(const LinearShape& shape, std::int64_t samples, DataType type) {
    const double flops = 2.0 * static_cast<double>(samples * shape.inputs * shape.outputs);
    for_each_version(
        "linear " + std::to_string(samples) + " x " + std::to_string(shape.inputs) + " -> " +
            std::to_string(shape.outputs),
        type, [&] {
          weighted(backend_.linear(shape, {samples, type}), samples,
                   {shape.inputs, shape.outputs, shape.inputs * shape.outputs, shape.outputs},
                   flops);
        });
  }

  // The two linear layers around a transformer's GELU, with the GELU fused and by itself.
  void linear_gelu(std::int64_t narrow, std::int64_t wide, std::int64_t samples, DataType type) {
    for_each_version("linear " + std::to_string(samples) + " x " + std::to_string(narrow) + " -> " +
                         std::to_string(wide) + " -> gelu -> " + std::to_string(narrow),
                     type, [&] { linear_gelu_passes(narrow, wide, samples); });
  }

  void conv(const ConvShape& shape, std::int64_t samples, DataType type) {
    const std::int64_t patch = shape.kernel * shape.kernel * shape.input.channels;
    const double flops = 2.0 * static_cast<double>(samples * shape.output().size() * patch);
    for_each_version(
        "conv " + std::to_string(samples) + " x " + std::to_string(shape.input.height) + "x" +
            std::to_string(shape.input.width) + "x" + std::to_string(shape.input.channels) +
            " -> " + std::to_string(shape.channels),
        type, [&] {
          weighted(backend_.conv(shape, {samples, type}), samples,
                   {.input = shape.input.size(),
                    .output = shape.output().size(),
                    .weights = patch * shape.channels,
                    .bias = shape.channels},
                   flops);
        });
  }

  void attention(const AttentionShape& shape, std::int64_t samples, DataType type) {
    // Half of the pairs, because a token does not look ahead.
    const double pairs = static_cast<double>(samples * shape.heads) *
                         static_cast<double>(shape.length * shape.length) / 2;
    const double flops = 4 * pairs * static_cast<double>(shape.width);
    for_each_version("attention " + std::to_string(samples) + " x " + std::to_string(shape.length) +
                         ", " + std::to_string(shape.heads) + " heads of " +
                         std::to_string(shape.width),
                     type, [&] { attention_passes(shape, samples, flops); });
  }

  void batch_norm(const BatchNormShape& shape, std::int64_t samples, DataType type) {
    const std::int64_t count = samples * shape.input.size();
    const double pass = static_cast<double>(count * size_of(type));
    operation_ = "batch norm " + std::to_string(samples) + " x " +
                 std::to_string(shape.input.height) + "x" + std::to_string(shape.input.width) +
                 "x" + std::to_string(shape.input.channels);
    version_ = backend_.name() == "cuda" ? "own" : backend_.name();  // no library does it
    type_ = type;
    auto op = made(backend_.batch_norm(shape, {samples, type}));
    if (op == nullptr) return;
    const auto x = random(count), dy = random(count), y = random(count), dx = random(count);
    // Scale, shift, running mean, running variance, gradients of scale and shift.
    std::vector<std::unique_ptr<Memory>> channel;
    for (int i = 0; i < 6; ++i) channel.push_back(memory(shape.input.channels * 4));
    const auto of_channel = [&](std::size_t i) { return static_cast<float*>(channel[i]->data()); };
    // Passes over an activation, as counted in batch_norm/batch_norm.cu.
    measure("forward", {.bytes = 3 * pass}, [&] {
      op->forward_training(samples, x->data(), of_channel(0), of_channel(1), of_channel(2),
                           of_channel(3), y->data(), {});
    });
    measure("backward", {.bytes = 5 * pass}, [&] {
      op->backward(samples, x->data(), y->data(), dy->data(), of_channel(0), dx->data(),
                   of_channel(4), of_channel(5));
    });
    BatchNormShape without_relu = shape;
    without_relu.relu = false;
    op = made(backend_.batch_norm(without_relu, {samples, type}));
    if (op == nullptr) return;
    measure("forward, ending a block", {.bytes = 4 * pass}, [&] {
      op->forward_training(samples, x->data(), of_channel(0), of_channel(1), of_channel(2),
                           of_channel(3), y->data(), {.shortcut = dy->data(), .relu = true});
    });
    const auto other = random(count);
    measure("backward, ending a block", {.bytes = 8 * pass}, [&] {
      op->backward_end(samples, x->data(), y->data(), dy->data(), other->data(), of_channel(0),
                       dx->data(), of_channel(4), of_channel(5));
    });
  }

 private:
  // Elements of a sample and of the parameters.
  struct Sizes {
    std::int64_t input, output, weights, bias;
  };

  // Runs three versions on a GPU: the library; the library's plain products with our kernels for
  // the work that it could fuse (biases, GELUs, bias gradients); and our kernels alone. Other
  // backends have one version.
  template <class Run>
  void for_each_version(const std::string& operation, DataType type, Run run) {
    operation_ = operation;
    type_ = type;
    if (backend_.name() != "cuda") {
      version_ = backend_.name();
      return run();
    }
    struct Version {
      const char *name, *own, *epilogues;
    };
    for (const auto& [name, own, epilogues] :
         {Version{"library", "0", "1"}, {"library, nothing fused", "0", "0"}, {"own", "1", "1"}}) {
      ::setenv("FETTLE_CUDA_OWN", own, 1);              // NOLINT(concurrency-mt-unsafe): one thread
      ::setenv("FETTLE_CUDA_EPILOGUES", epilogues, 1);  // NOLINT(concurrency-mt-unsafe): likewise
      version_ = name;
      run();
    }
  }

  template <class Op>
  void weighted(Result<std::unique_ptr<Op>> result, std::int64_t samples, const Sizes& sizes,
                double flops) {
    auto op = made(std::move(result));
    if (op == nullptr) return;
    const auto x = random(samples * sizes.input), y = random(samples * sizes.output);
    const auto dy = random(samples * sizes.output), dx = random(samples * sizes.input);
    const auto weights = random(sizes.weights);
    // Zeros, which have the same bytes in fp32 and in the plan's type.
    const auto bias = memory(sizes.bias * 4), db = memory(sizes.bias * 4);
    const auto dw = memory(sizes.weights * 4);
    op->set_weights({weights->data(), static_cast<const float*>(bias->data()), bias->data()});
    measure("forward", {flops, 0}, [&] { op->forward(samples, x->data(), y->data()); });
    measure("backward", {2 * flops, 0}, [&] {
      op->backward(samples, x->data(), y->data(), dy->data(), dx->data(),
                   static_cast<float*>(dw->data()), static_cast<float*>(db->data()));
    });
  }

  void linear_gelu_passes(std::int64_t narrow, std::int64_t wide, std::int64_t samples) {
    constexpr GeluForm kForm = GeluForm::kTanh;
    auto up = made(backend_.linear({.inputs = narrow, .outputs = wide, .gelu_after = kForm},
                                   {samples, type_}));
    auto down = made(backend_.linear({.inputs = wide, .outputs = narrow, .gelu_before = kForm},
                                     {samples, type_}));
    if (up == nullptr || down == nullptr) return;
    const std::int64_t count = samples * wide;
    const auto gelu = backend_.gelu(kForm, count, type_);
    const auto x = random(samples * narrow), z = random(count), a = random(count);
    const auto dy = random(samples * narrow), dz = random(count), weights = random(narrow * wide);
    // Shared by both layers, so sized for the larger.
    const auto bias = memory(wide * 4), db = memory(wide * 4), dw = memory(narrow * wide * 4);
    for (LinearOp* op : {up.get(), down.get()}) {
      op->set_weights({weights->data(), static_cast<const float*>(bias->data()), bias->data()});
    }
    const auto sums = [](Memory& memory) { return static_cast<float*>(memory.data()); };
    const double flops = 2.0 * static_cast<double>(count * narrow);
    measure("forward, fused", {flops, 0},
            [&] { up->forward_gelu(samples, x->data(), z->data(), a->data()); });
    measure("forward, then GELU", {flops, 0}, [&] {
      up->forward(samples, x->data(), z->data());
      gelu->forward(count, z->data(), a->data());
    });
    measure("backward, fused", {2 * flops, 0}, [&] {
      down->backward_gelu(samples, z->data(), a->data(), nullptr, dy->data(), dz->data(), sums(*dw),
                          sums(*db));
    });
    measure("backward, then GELU", {2 * flops, 0}, [&] {
      down->backward(samples, a->data(), nullptr, dy->data(), dz->data(), sums(*dw), sums(*db));
      gelu->backward(count, z->data(), dz->data(), dz->data());
    });
  }

  void attention_passes(const AttentionShape& shape, std::int64_t samples, double flops) {
    const std::int64_t count = samples * shape.length * shape.channels();
    const auto qkv = random(3 * count), dqkv = random(3 * count);
    const auto y = random(count), dy = random(count);
    for (const bool deterministic : {false, true}) {
      auto op = made(backend_.attention(
          shape, {.max_samples = samples, .type = type_, .deterministic = deterministic}));
      if (op == nullptr) continue;  // made() has printed why
      if (!deterministic) {         // forward is the same for both
        measure("forward", {flops, 0}, [&] { op->forward(samples, qkv->data(), y->data()); });
      }
      measure(deterministic ? "backward, deterministic" : "backward", {2.5 * flops, 0},
              [&] { op->backward(samples, qkv->data(), y->data(), dy->data(), dqkv->data()); });
    }
  }

  template <class Op>
  std::unique_ptr<Op> made(Result<std::unique_ptr<Op>> result) {
    if (result.ok()) return std::move(result).value();
    std::fprintf(stderr, "kernels_bench: %s, %s: %s\n", operation_.c_str(), version_.c_str(),
                 result.error().message.c_str());
    return nullptr;
  }

  std::unique_ptr<Memory> memory(std::int64_t bytes) {
    auto made = backend_.allocate(bytes);
    CHECK(made.ok(), made.error().message);
    return std::move(made).value();
  }

  // Fills memory with numbers in [-1, 1): zeros would take less power, and so less time.
  std::unique_ptr<Memory> random(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    Random source(1);
    for (float& value : values) value = static_cast<float>(2 * source.uniform() - 1);
    auto floats = memory(count * 4);
    backend_.upload(values.data(), floats->data(), count * 4);
    if (type_ == DataType::kFloat32) return floats;
    auto rounded = memory(count * size_of(type_));
    backend_.round(type_, count, static_cast<const float*>(floats->data()),
                   static_cast<std::uint16_t*>(rounded->data()));
    backend_.wait();
    return rounded;
  }

  // Neither captures nor counts the first call, which plans and loads libraries.
  void measure(const char* pass, const Work& work, const std::function<void()>& call) {
    call();
    backend_.wait();
    const auto graph = backend_.capture(call);
    double runs = 0;
    const auto start = std::chrono::steady_clock::now();
    std::chrono::duration<double> spent{};
    while (spent.count() < options_.seconds) {
      constexpr int kRunsAtOnce = 10;
      for (int i = 0; i < kRunsAtOnce; ++i) graph->launch();
      backend_.wait();
      runs += kRunsAtOnce;
      spent = std::chrono::steady_clock::now() - start;
    }
    print(pass, work, spent.count() / runs);
  }

  double peak_of(const Work& work) const {
    if (!options_.peak.has_value()) return 0;
    if (work.bytes > 0) return options_.peak->memory;
    return type_ == DataType::kFloat32 ? options_.peak->fp32_exact : options_.peak->bits16;
  }

  void print(const char* pass, const Work& work, double seconds) const {
    const bool by_bytes = work.bytes > 0;
    const double rate = (by_bytes ? work.bytes : work.flops) / seconds;
    std::printf(
        "{\"operation\": \"%s\", \"pass\": \"%s\", \"precision\": \"%s\", \"version\": \"%s\", "
        "\"microseconds\": %.2f, \"%s\": %.2f",
        operation_.c_str(), pass, name_of(type_), version_.c_str(), seconds * 1e6,
        by_bytes ? "gigabytes_per_second" : "teraflops", by_bytes ? rate / 1e9 : rate / 1e12);
    if (const double peak = peak_of(work); peak > 0) {
      std::printf(", \"share_of_peak\": %.3f, \"peak\": %.4g, \"device\": \"%s\"", rate / peak,
                  peak, options_.device.c_str());
    }
    std::printf("}\n");
    std::fflush(stdout);
  }

  Backend& backend_;
  const LadderOptions options_;
  std::string operation_, version_;
  DataType type_ = DataType::kFloat32;
};

}  // namespace

// The shapes' members in order: linear {inputs, outputs, bias, relu}; conv {input, channels,
// kernel, stride, padding, bias, relu}; attention {length, heads, width}; batch norm {input,
// epsilon, momentum, relu}.
void climb_ladder(Backend& backend, const LadderOptions& options) {
  Ladder ladder(backend, options);
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat32}) {
    if (options.tiny) {
      ladder.linear({96, 64, true, true}, 32, type);
      ladder.linear_gelu(32, 64, 32, type);
      ladder.conv({{8, 8, 16}, 32, 3, 1, 1, true, true}, 2, type);
      ladder.attention({32, 2, 16}, 2, type);
      ladder.batch_norm({{8, 8, 32}, 1e-5F, 0.1F, true}, 4, type);
      continue;
    }
    ladder.linear({512, 512, true, true}, 128, type);     // of the MLP
    ladder.linear({768, 3072, true, false}, 8192, type);  // of GPT-2
    ladder.linear_gelu(768, 3072, 8192, type);            // of GPT-2
    ladder.linear({4096, 4096, false, false}, 4096, type);
    ladder.conv({{16, 16, 128}, 256, 3, 1, 1, false, false}, 512, type);  // of ResNet-9
    ladder.conv({{56, 56, 64}, 64, 3, 1, 1, false, false}, 256, type);    // of ResNet-50
    ladder.attention({256, 6, 64}, 64, type);                             // of a character GPT
    ladder.attention({1024, 12, 64}, 8, type);                            // of GPT-2
    ladder.batch_norm({{56, 56, 256}, 1e-5F, 0.1F, true}, 64, type);      // of ResNet-50
  }
}

}  // namespace fettle::kernels::bench
