// The optimisers as multi-tensor kernels: one launch updates all parts of a network.
//
// Bound by bytes on an H100. AdamW with a 16-bit copy reads 16 and writes 14 for a weight and
// computes some thirty operations with it, where three hundred would fit in. So everything that
// touches a weight in a step happens while it is in registers: unscaling and clipping (both in
// control->gradient_scale), weight decay, the formula and the rounding of the copy. Four numbers
// move at a time, 64 bytes in flight a thread. One thread of a block computes the double-precision
// values that all weights of a part share: 2048 threads on the 64 double-precision units of a
// multiprocessor would take longer than memory does.
//
// LAMB needs the norms of a tensor before any of its weights may move, so it has three kernels:
// moments and sums of squares of each chunk; the ratio of each tensor; the weights. The order of
// sums depends on nothing but the sizes, hence a fixed number of threads.
#include <algorithm>
#include <utility>

#include "kernels/cuda/device_code/last_block.cuh"
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/device_code/reduce.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/optimizer/formulas.h"
#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/table.h"

namespace fettle::kernels {
namespace cuda {
namespace {

constexpr unsigned kThreads = kBlockThreads;
constexpr unsigned kSquaresBlocks = kSquaresScratch / sizeof(double);
constexpr std::int64_t kSquaresPerBlock = 4096;  // minimum

template <UpdateRule kRule>
__device__ auto formula_of(const UpdateSettings& settings, const UpdateBuffers& part,
                           const StepControl& step) {
  if constexpr (kRule == UpdateRule::kSgd) {
    return SgdFormula(settings, part, step);
  } else if constexpr (kRule == UpdateRule::kRmsProp) {
    return RmspropFormula(settings, part, step);
  } else if constexpr (kRule == UpdateRule::kLamb) {
    return LambFormula(settings, part, step);
  } else {
    return AdamFormula(settings, part, step, /*decoupled=*/kRule == UpdateRule::kAdamW);
  }
}

// ---- Arrays, N numbers at a time ---------------------------------------------------------------

// Returns zeros if the array does not exist.
template <int N>
__device__ __forceinline__ Pack<float, N> load(const float* from, std::int64_t at) {
  if (from == nullptr) return {};
  return load_pack<N>(from + at);
}

template <int N>
__device__ __forceinline__ void store(const Pack<float, N>& values, float* to, std::int64_t at) {
  if (to != nullptr) store_pack(values, to + at);
}

template <class T, int N>
__device__ __forceinline__ void store_as(const Pack<float, N>& values, std::uint16_t* to) {
  Pack<T, N> rounded;
#pragma unroll
  for (int i = 0; i < N; ++i) rounded.at[i] = from_float<T>(values.at[i]);
  store_pack(rounded, reinterpret_cast<T*>(to));
}

template <int N>
__device__ __forceinline__ void store_weights(Pack<float, N>& weights, const UpdateBuffers& part,
                                              std::int64_t at) {
  if (part.mask != nullptr) {
#pragma unroll
    for (int i = 0; i < N; ++i) weights.at[i] = masked(weights.at[i], part.mask, at + i);
  }
  store(weights, part.weights, at);
  if (part.rounded == nullptr) return;
  if (part.rounded_type == DataType::kFloat16) {
    store_as<__half>(weights, part.rounded + at);
  } else {
    store_as<__nv_bfloat16>(weights, part.rounded + at);
  }
}

// Calls body.run<N>(element) for the elements of a chunk, four at a time if their addresses allow
// it.
template <class Body>
__device__ void for_each_in(const UpdateChunk& chunk, bool packed, Body& body) {
  constexpr int kPack = 4;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  const int in_packs = packed ? chunk.count / kPack * kPack : 0;
  for (int i = thread * kPack; i < in_packs; i += threads * kPack) {
    body.template run<kPack>(chunk.begin + i);
  }
  for (int i = in_packs + thread; i < chunk.count; i += threads) {
    body.template run<1>(chunk.begin + i);
  }
}

// Calls body(formula, part, chunk, number of the chunk) for each chunk dealt to this block.
template <UpdateRule kRule, class Body>
__device__ void for_each_chunk(const UpdateView& view, const UpdateSettings& settings,
                               const StepControl& step, Body body) {
  __shared__ decltype(formula_of<kRule>(settings, {}, step)) formula;
  std::int32_t part = -1;
  for (auto i = static_cast<int>(blockIdx.x); i < view.chunk_count;
       i += static_cast<int>(gridDim.x)) {
    const UpdateChunk chunk = view.chunks[i];
    if (chunk.part != part) {  // uniform over the block's threads
      part = chunk.part;
      __syncthreads();  // others may still read the previous part's formula
      if (threadIdx.x == 0) {
        formula = formula_of<kRule>(settings, view.parts[part].buffers, step);
      }
      __syncthreads();
    }
    body(formula, view.parts[part], chunk, i);
  }
}

// ---- SGD, Adam, AdamW, RMSprop -----------------------------------------------------------------

template <class Formula>
struct Update {
  const Formula& formula;
  const UpdateBuffers& part;

  // Updates the N weights from `at` on. A rule without a state has nullptr there (load, store).
  template <int N>
  __device__ __forceinline__ void run(std::int64_t at) {
    Pack<float, N> weights = load<N>(part.weights, at);
    const Pack<float, N> gradient = load<N>(part.gradient, at);
    Pack<float, N> state1 = load<N>(part.state1, at);
    Pack<float, N> state2 = load<N>(part.state2, at);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      formula(weights.at[i], gradient.at[i], state1.at[i], state2.at[i]);
    }
    store(state1, part.state1, at);
    store(state2, part.state2, at);
    store_weights(weights, part, at);
  }
};

template <UpdateRule kRule>
__global__ void __launch_bounds__(kThreads)
    update(UpdateView view, UpdateSettings settings, const StepControl* control) {
  if (control->apply == 0) return;  // overflow, divergence or lost sums (step.h)
  for_each_chunk<kRule>(
      view, settings, *control,
      [](const auto& shared, const UpdatePart& part, const UpdateChunk& chunk, int) {
        // Copies in registers: no store to an array can change them.
        const auto formula = shared;
        const UpdateBuffers buffers = part.buffers;
        Update<std::decay_t<decltype(formula)>> body{formula, buffers};
        for_each_in(chunk, part.packed, body);
      });
}

// ---- LAMB --------------------------------------------------------------------------------------

struct Squares {
  double weights;
  double directions;
};

struct LambMoments {
  const LambFormula& formula;
  const UpdateBuffers& part;
  Squares squares;

  template <int N>
  __device__ __forceinline__ void run(std::int64_t at) {
    const Pack<float, N> weights = load<N>(part.weights, at);
    const Pack<float, N> gradient = load<N>(part.gradient, at);
    Pack<float, N> first = load<N>(part.state1, at);
    Pack<float, N> second = load<N>(part.state2, at);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      formula.update_moments(gradient.at[i], first.at[i], second.at[i]);
      const double weight = weights.at[i];
      const double direction = formula.direction(weights.at[i], first.at[i], second.at[i]);
      squares.weights += weight * weight;
      squares.directions += direction * direction;
    }
    store(first, part.state1, at);
    store(second, part.state2, at);
  }
};

struct LambWeights {
  const LambFormula& formula;
  const UpdateBuffers& part;
  float rate;

  template <int N>
  __device__ __forceinline__ void run(std::int64_t at) {
    Pack<float, N> weights = load<N>(part.weights, at);
    const Pack<float, N> first = load<N>(part.state1, at);
    const Pack<float, N> second = load<N>(part.state2, at);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      weights.at[i] -= rate * formula.direction(weights.at[i], first.at[i], second.at[i]);
    }
    store_weights(weights, part, at);
  }
};

__global__ void __launch_bounds__(kThreads)
    lamb_moments(UpdateView view, UpdateSettings settings, const StepControl* control,
                 Squares* of_chunks) {
  if (control->apply == 0) return;  // overflow, divergence or lost sums (step.h)
  for_each_chunk<UpdateRule::kLamb>(
      view, settings, *control,
      [of_chunks](const LambFormula& shared, const UpdatePart& part, const UpdateChunk& chunk,
                  int number) {
        const LambFormula formula = shared;
        const UpdateBuffers buffers = part.buffers;
        LambMoments body{formula, buffers, {0, 0}};
        for_each_in(chunk, part.packed, body);
        // All threads of a block have the same chunks, so all meet in the sums' barriers.
        const Squares sums{block_sum(body.squares.weights), block_sum(body.squares.directions)};
        if (threadIdx.x == 0) of_chunks[number] = sums;
      });
}

// Handles one tensor in each block.
__global__ void __launch_bounds__(kThreads) lamb_ratios(UpdateView view, const StepControl* control,
                                                        const Squares* of_chunks, double* ratios) {
  if (control->apply == 0) return;  // overflow, divergence or lost sums (step.h)
  const UpdatePart& part = view.parts[blockIdx.x];
  Squares sums{0, 0};
  for (auto i = static_cast<int>(threadIdx.x); i < part.chunks; i += static_cast<int>(blockDim.x)) {
    sums.weights += of_chunks[part.first_chunk + i].weights;
    sums.directions += of_chunks[part.first_chunk + i].directions;
  }
  sums = {block_sum(sums.weights), block_sum(sums.directions)};
  if (threadIdx.x == 0) ratios[blockIdx.x] = lamb_ratio(sums.weights, sums.directions);
}

__global__ void __launch_bounds__(kThreads)
    lamb_weights(UpdateView view, UpdateSettings settings, const StepControl* control,
                 const double* ratios) {
  if (control->apply == 0) return;  // overflow, divergence or lost sums (step.h)
  for_each_chunk<UpdateRule::kLamb>(
      view, settings, *control,
      [ratios](const LambFormula& shared, const UpdatePart& part, const UpdateChunk& chunk, int) {
        const LambFormula formula = shared;
        const UpdateBuffers buffers = part.buffers;
        LambWeights body{formula, buffers, static_cast<float>(formula.rate * ratios[chunk.part])};
        for_each_in(chunk, part.packed, body);
      });
}

// ---- Sums of squares ---------------------------------------------------------------------------

// Block b sums per_block elements from b * per_block on; the last block to end sums the blocks.
__global__ void __launch_bounds__(kThreads)
    sum_squares(std::int64_t count, std::int64_t per_block, const float* values, double* of_blocks,
                unsigned* counter, double* result) {
  const std::int64_t begin = blockIdx.x * per_block;
  const std::int64_t end = min(begin + per_block, count);
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double value = values[i];
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = sum;
  if (!is_last_block(gridDim.x, counter)) return;
  sum = sum_as_block_of<kThreads>(static_cast<int>(gridDim.x),
                                  [of_blocks](int block) { return __ldcg(of_blocks + block); });
  if (threadIdx.x == 0) *result = sum;
}

// ---- Launches ----------------------------------------------------------------------------------

using UpdateKernel = void (*)(UpdateView, UpdateSettings, const StepControl*);

UpdateKernel kernel_of(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::kAdam:
      return update<UpdateRule::kAdam>;
    case UpdateRule::kAdamW:
      return update<UpdateRule::kAdamW>;
    case UpdateRule::kRmsProp:
      return update<UpdateRule::kRmsProp>;
    default:  // kSgd; kLamb is CudaLamb's
      return update<UpdateRule::kSgd>;
  }
}

LaunchShape shape_of(const Device& device, const UpdateView& view) {
  return strided_shape(device.multiprocessors(), static_cast<unsigned>(view.chunk_count));
}

class CudaUpdate final : public UpdateOp {
 public:
  CudaUpdate(Device& device, UpdateRule rule, UpdateTable table, const UpdateSettings& settings)
      : device_(device), kernel_(kernel_of(rule)), table_(std::move(table)), settings_(settings) {}

  void run(const StepControl* control) override {
    const UpdateView view = table_.view();
    if (view.chunk_count == 0) return;
    launch(device_.stream(), shape_of(device_, view), kernel_, view, settings_, control);
  }

 private:
  Device& device_;
  const UpdateKernel kernel_;
  const UpdateTable table_;
  const UpdateSettings settings_;
};

class CudaLamb final : public UpdateOp {
 public:
  static Result<std::unique_ptr<UpdateOp>> create(Device& device, UpdateTable table,
                                                  const UpdateSettings& settings) {
    auto made = std::make_unique<CudaLamb>(device, std::move(table), settings);
    const UpdateView view = made->table_.view();
    FETTLE_ASSIGN(made->squares_, device.allocate(view.chunk_count * sizeof(Squares)));
    FETTLE_ASSIGN(made->ratios_, device.allocate(view.part_count * sizeof(double)));
    return std::unique_ptr<UpdateOp>(std::move(made));
  }
  CudaLamb(Device& device, UpdateTable table, const UpdateSettings& settings)
      : device_(device), table_(std::move(table)), settings_(settings) {}

  void run(const StepControl* control) override {
    const UpdateView view = table_.view();
    if (view.chunk_count == 0) return;
    auto* const squares = static_cast<Squares*>(squares_->data());
    auto* const ratios = static_cast<double*>(ratios_->data());
    launch(device_.stream(), shape_of(device_, view), lamb_moments, view, settings_, control,
           squares);
    const LaunchShape block_a_part{.blocks = static_cast<unsigned>(view.part_count),
                                   .threads = kThreads};
    launch(device_.stream(), block_a_part, lamb_ratios, view, control, squares, ratios);
    launch(device_.stream(), shape_of(device_, view), lamb_weights, view, settings_, control,
           ratios);
  }

 private:
  Device& device_;
  const UpdateTable table_;
  const UpdateSettings settings_;
  std::unique_ptr<Memory> squares_, ratios_;
};

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<UpdateOp>> cuda_update(cuda::Device& device, UpdateRule rule,
                                              std::vector<UpdateBuffers> parts,
                                              const UpdateSettings& settings) {
  FETTLE_ASSIGN(cuda::UpdateTable table, cuda::UpdateTable::create(device, parts));
  if (rule == UpdateRule::kLamb) return cuda::CudaLamb::create(device, std::move(table), settings);
  return std::unique_ptr<UpdateOp>(
      std::make_unique<cuda::CudaUpdate>(device, rule, std::move(table), settings));
}

void cuda_sum_of_squares(cuda::Device& device, std::int64_t count, const float* values,
                         double* result) {
  using cuda::kSquaresBlocks, cuda::kSquaresPerBlock, cuda::kThreads;
  const std::int64_t per_block =
      std::max(kSquaresPerBlock, (count + kSquaresBlocks - 1) / kSquaresBlocks);
  // If there is nothing to sum, one block writes 0.
  const auto blocks =
      static_cast<unsigned>(std::max<std::int64_t>((count + per_block - 1) / per_block, 1));
  auto* const of_blocks = static_cast<double*>(device.scratch(kSquaresScratch));
  cuda::launch(device.stream(), {.blocks = blocks, .threads = kThreads}, cuda::sum_squares, count,
               per_block, values, of_blocks, device.counters(1), result);
}

}  // namespace fettle::kernels
