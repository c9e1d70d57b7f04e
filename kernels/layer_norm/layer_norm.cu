// Bound by bytes: forward reads and writes a row once, forward_sum reads two and writes two,
// backward reads x and dy (and the dx that it adds to) and writes dx once. That asks for rows in
// registers: each thread of a team (team.h) keeps at most four packs of 16 bytes of its row, so a
// warp has up to 1024 channels of a 16-bit type, a block of 256 threads 8192. any_width.h handles
// longer rows.
//
// Backward deals the rows to a fixed number of strips, a block each. A thread's channels are the
// same in every row, so it sums the gradients of scale and shift in registers, beside dx, without
// further reads. Each strip writes its sums, and a second kernel sums these in order. The number
// of strips does not depend on the GPU, so the same batch gives the same bits on any.
#include <algorithm>

#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/device_code/team.h"
#include "kernels/cuda/operations.h"
#include "kernels/layer_norm/any_width.h"

namespace fettle::kernels {
namespace {

using cuda::NormRows;
using cuda::Pack;
using cuda::RowNormBackward;
using cuda::RowNormForward;
using cuda::RowStatistics;

constexpr int kKept = 4;          // packs of a row in a thread's registers
constexpr int kMaxThreads = 256;  // leaves 255 registers to each
constexpr int kMaxStrips = 512;

// One thread's share of a row.
template <int width, class T>
using Kept = Pack<T, width>[kKept];

template <class Team, int width, class T>
__device__ __forceinline__ void load_row(int packs, const T* row, Kept<width, T>& kept) {
  cuda::for_each_kept<Team, kKept>(
      packs, [&](int p, int pack) { kept[p] = cuda::load_pack<width>(row + pack * width); });
}

// Loads the row to normalise; a sum is also stored. Both summands are requested before either is
// used.
template <class Team, int width, class T, bool summed>
__device__ __forceinline__ void load_input(int packs, const RowNormForward& buffers,
                                           std::int64_t first, Kept<width, T>& kept) {
  load_row<Team, width, T>(packs, static_cast<const T*>(buffers.a) + first, kept);
  if constexpr (!summed) return;
  Kept<width, T> other;
  load_row<Team, width, T>(packs, static_cast<const T*>(buffers.b) + first, other);
  T* sum = static_cast<T*>(buffers.sum) + first;
  cuda::for_each_kept<Team, kKept>(packs, [&](int p, int pack) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      kept[p].at[i] =
          cuda::from_float<T>(cuda::to_float(kept[p].at[i]) + cuda::to_float(other[p].at[i]));
    }
    cuda::store_pack(kept[p], sum + pack * width);
  });
}

// The sums over the row of (x - center) and its square.
struct Deviations {
  float sum, squares;
};

template <class Team, int width, class T>
__device__ Deviations deviations(int packs, const Kept<width, T>& kept, float center) {
  Deviations mine{0, 0};
  cuda::for_each_kept<Team, kKept>(packs, [&](int p, int) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float deviation = cuda::to_float(kept[p].at[i]) - center;
      mine.sum += deviation;
      mine.squares += deviation * deviation;
    }
  });
  return {Team::sum(mine.sum), Team::sum(mine.squares)};
}

// The first sum may be rounded; the mean of the deviations d from its center is the rounding error.
// It corrects the center, and the variance, which is E[d^2] - E[d]^2.
template <class Team, int width, class T>
__device__ RowStatistics measure(const NormRows& rows, int packs, const Kept<width, T>& kept) {
  const auto n = static_cast<float>(rows.channels);
  const Deviations from_zero = deviations<Team, width, T>(packs, kept, 0);
  if (rows.kind == RowNormKind::kRms) return {0, rsqrtf(from_zero.squares / n + rows.epsilon)};
  const float center = from_zero.sum / n;
  const Deviations from_center = deviations<Team, width, T>(packs, kept, center);
  const float correction = from_center.sum / n;
  const float variance = from_center.squares / n - correction * correction;
  return {center + correction, rsqrtf(fmaxf(variance, 0) + rows.epsilon)};  // may round below 0
}

// `summed`: normalises a + b, in a separate kernel, because it takes half as many registers again.
template <class Team, int width, class T, bool summed>
__global__ void __launch_bounds__(kMaxThreads)
    forward_kernel(NormRows rows, RowNormForward buffers) {
  const int packs = static_cast<int>(rows.channels) / width;
  for (std::int64_t row = cuda::team_index<Team>(); row < rows.count;
       row += cuda::team_count<Team>()) {
    Kept<width, T> kept;
    load_input<Team, width, T, summed>(packs, buffers, row * rows.channels, kept);
    const RowStatistics of_row = measure<Team, width, T>(rows, packs, kept);
    T* y = static_cast<T*>(buffers.y) + row * rows.channels;
    cuda::for_each_kept<Team, kKept>(packs, [&](int p, int pack) {
      const auto scales = cuda::load_pack<width>(buffers.scale + pack * width);
      Pack<float, width> shifts{};
      if (buffers.shift != nullptr) shifts = cuda::load_pack<width>(buffers.shift + pack * width);
      Pack<T, width> result;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const float h = (cuda::to_float(kept[p].at[i]) - of_row.center) * of_row.factor;
        result.at[i] = cuda::from_float<T>(h * scales.at[i] + shifts.at[i]);
      }
      cuda::store_pack(result, y + pack * width);
    });
    if (Team::rank() == 0) buffers.statistics[row] = of_row;
  }
}

// A thread's values for one element in backward.
struct Gradient {
  float h, dy, g;
};

// One thread's share of a row in backward.
template <int width, class T>
struct Part {
  Kept<width, T> x, dy;
  Kept<width, T> before;  // contents of dx, if the gradient is added to them
  RowStatistics statistics;

  __device__ Gradient gradient(int p, int i, float scale) const {
    const float dy_here = cuda::to_float(dy[p].at[i]);
    return {(cuda::to_float(x[p].at[i]) - statistics.center) * statistics.factor, dy_here,
            dy_here * scale};
  }
};

// Sums of a thread's channels over the rows of its team.
template <int width>
struct ParameterSums {
  Pack<float, width> scale[kKept] = {};
  Pack<float, width> shift[kKept] = {};
};

// dx = factor (g - mean_g - h mean_gh), with the means over the row's channels; RMS has no mean_g.
template <class Team, int width, class T>
__device__ void write_input_gradient(int packs, const Part<width, T>& part,
                                     const RowNormBackward& buffers, float mean_g, float mean_gh,
                                     T* dx) {
  cuda::for_each_kept<Team, kKept>(packs, [&](int p, int pack) {
    const auto scales = cuda::load_pack<width>(buffers.scale + pack * width);
    Pack<T, width> result;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const Gradient at = part.gradient(p, i, scales.at[i]);
      float gradient = part.statistics.factor * (at.g - mean_g - at.h * mean_gh);
      if (buffers.add) gradient += cuda::to_float(part.before[p].at[i]);
      result.at[i] = cuda::from_float<T>(gradient);
    }
    cuda::store_pack(result, dx + pack * width);
  });
}

// Adds a row to `sums`, and writes its dx.
template <class Team, int width, class T>
__device__ void go_back(const NormRows& rows, int packs, const RowNormBackward& buffers,
                        std::int64_t row, ParameterSums<width>& sums) {
  const std::int64_t first = row * rows.channels;
  Part<width, T> part;
  load_row<Team, width, T>(packs, static_cast<const T*>(buffers.x) + first, part.x);
  load_row<Team, width, T>(packs, static_cast<const T*>(buffers.dy) + first, part.dy);
  if (buffers.add) {  // never without a dx: CudaRowNorm::backward
    load_row<Team, width, T>(packs, static_cast<const T*>(buffers.dx) + first, part.before);
  }
  part.statistics = buffers.statistics[row];
  float sum = 0;
  float product = 0;
  cuda::for_each_kept<Team, kKept>(packs, [&](int p, int pack) {
    const auto scales = cuda::load_pack<width>(buffers.scale + pack * width);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const Gradient at = part.gradient(p, i, scales.at[i]);
      sums.scale[p].at[i] += at.dy * at.h;
      sums.shift[p].at[i] += at.dy;
      sum += at.g;
      product += at.g * at.h;
    }
  });
  if (buffers.dx == nullptr) return;  // alike in all threads: none waits in Team::sum
  const auto n = static_cast<float>(rows.channels);
  const float mean = rows.kind == RowNormKind::kLayer ? Team::sum(sum) / n : 0;
  write_input_gradient<Team, width, T>(packs, part, buffers, mean, Team::sum(product) / n,
                                       static_cast<T*>(buffers.dx) + first);
}

// A strip's sums, of scale and of shift: [2][strips][channels].
__device__ float* sums_of(float* all, int which, std::int64_t strip, std::int64_t strips,
                          std::int64_t channels) {
  return all + (which * strips + strip) * channels;
}

template <int width>
__device__ void add_or_start(bool start, const Pack<float, width>& sums, float* to) {
  Pack<float, width> total = sums;
  if (!start) {
    const auto before = cuda::load_pack<width>(to);
#pragma unroll
    for (int i = 0; i < width; ++i) total.at[i] += before.at[i];
  }
  cuda::store_pack(total, to);
}

// Handles one strip in each block. Its teams add their sums one after the other.
template <class Team, int width, class T>
__global__ void __launch_bounds__(kMaxThreads)
    backward_kernel(NormRows rows, RowNormBackward buffers, float* strip_sums) {
  const int packs = static_cast<int>(rows.channels) / width;
  ParameterSums<width> sums;
  for (std::int64_t row = cuda::team_index<Team>(); row < rows.count;
       row += cuda::team_count<Team>()) {
    go_back<Team, width, T>(rows, packs, buffers, row, sums);
  }
  float* scale_sums = sums_of(strip_sums, 0, blockIdx.x, gridDim.x, rows.channels);
  float* shift_sums = sums_of(strip_sums, 1, blockIdx.x, gridDim.x, rows.channels);
  for (int team = 0; team < Team::in_block(); ++team) {
    if (Team::index() == team) {
      cuda::for_each_kept<Team, kKept>(packs, [&](int p, int pack) {
        add_or_start(team == 0, sums.scale[p], scale_sums + pack * width);
        add_or_start(team == 0, sums.shift[p], shift_sums + pack * width);
      });
    }
    __syncthreads();  // the next team adds to the sums that this team has stored
  }
}

// Sums the strips. A block has 32 channels; each of its warps sums every eighth strip, and the
// warps' sums are added in order. blockIdx.y: 0 scale, 1 shift.
constexpr int kStripWarps = 8;
__global__ void add_strips_kernel(std::int64_t channels, std::int64_t strips, float* strip_sums,
                                  float* scale_gradient, float* shift_gradient) {
  __shared__ float of_warps[kStripWarps][cuda::kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarpSize;
  const std::int64_t c = std::int64_t{blockIdx.x} * cuda::kWarpSize + lane;
  const float* sums = sums_of(strip_sums, static_cast<int>(blockIdx.y), 0, strips, channels);
  float sum = 0;
  if (c < channels) {
#pragma unroll 8
    for (std::int64_t strip = warp; strip < strips; strip += kStripWarps) {
      sum += sums[strip * channels + c];
    }
  }
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || c >= channels) return;
  for (int w = 1; w < kStripWarps; ++w) sum += of_warps[w][lane];
  float* gradient = blockIdx.y == 0 ? scale_gradient : shift_gradient;
  gradient[c] += sum;
}

// ---- On the host -------------------------------------------------------------------------------

// The team that shares a row of `packs`, and the threads of a block. A block that is one team has
// the threads that keep the row, rounded up to whole warps.
struct TeamChoice {
  explicit TeamChoice(std::int64_t packs)
      : warp(packs <= kKept * cuda::kWarpSize),
        threads(warp ? kWarps * cuda::kWarpSize
                     : static_cast<unsigned>((packs + kKept - 1) / kKept + 31) / 32 * 32),
        rows_of_block(warp ? kWarps : 1),
        fits(packs <= kKept * kMaxThreads) {}
  static constexpr int kWarps = 4;  // of a block in which each warp is a team
  bool warp;
  unsigned threads;
  std::int64_t rows_of_block;
  bool fits;
};

template <class T>
class CudaRowNorm : public RowNormOp {
 public:
  CudaRowNorm(cuda::Device& device, const RowNormShape& shape, DataType type,
              std::unique_ptr<Memory> statistics)
      : device_(device), shape_(shape), type_(type), statistics_(std::move(statistics)) {}

  static std::int64_t scratch_bytes(const RowNormShape& shape) {
    return 2 * kMaxStrips * shape.input.channels * std::int64_t{sizeof(float)};  // scale, shift
  }

  void forward(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
               Buffer y) override {
    launch_forward<false>(
        rows_of(samples),
        {.a = x, .scale = scale, .shift = shift, .y = y, .statistics = statistics()});
  }

  void forward_sum(std::int64_t samples, ConstBuffer a, ConstBuffer b, Buffer sum,
                   const float* scale, const float* shift, Buffer y) override {
    launch_forward<true>(rows_of(samples), {a, b, sum, scale, shift, y, statistics()});
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer dy, const float* scale, Buffer dx,
                bool add, float* scale_gradient, float* shift_gradient) override {
    const NormRows rows = rows_of(samples);
    const RowNormBackward buffers{.x = x,
                                  .dy = dy,
                                  .scale = scale,
                                  .statistics = statistics(),
                                  .dx = dx,
                                  .add = add && dx != nullptr,
                                  .scale_gradient = scale_gradient,
                                  .shift_gradient = shift_gradient};
    const bool packs = uses_packs(static_cast<const T*>(x), static_cast<const T*>(dy),
                                  static_cast<const T*>(dx), scale);
    cuda::with_width<kWidth>(packs, [&](auto width) {
      const TeamChoice team(rows.channels / width);
      if (team.fits) {
        backward_in_strips<width()>(rows, team, buffers);
      } else {
        any_width_row_norm_backward(device_, type_, rows, buffers);  // longer than registers hold
      }
    });
  }

 private:
  static constexpr int kWidth = cuda::kPackWidth<T>;

  NormRows rows_of(std::int64_t samples) const {
    return {shape_.kind, shape_.epsilon, samples * shape_.input.height * shape_.input.width,
            shape_.input.channels};
  }

  template <class... Pointers>
  bool uses_packs(Pointers... pointers) const {
    return shape_.input.channels % kWidth == 0 && (cuda::is_aligned<kWidth>(pointers) && ...);
  }

  RowStatistics* statistics() const { return static_cast<RowStatistics*>(statistics_->data()); }

  static unsigned blocks(const NormRows& rows, const TeamChoice& team, std::int64_t at_most) {
    return static_cast<unsigned>(std::min(
        at_most,
        std::int64_t{cuda::blocks_for(rows.count, static_cast<unsigned>(team.rows_of_block))}));
  }

  template <bool summed>
  void launch_forward(const NormRows& rows, const RowNormForward& buffers) {
    // is_aligned() is true for nullptr: a plain forward has no b and sum, RMS norm has no shift.
    const bool packs = uses_packs(static_cast<const T*>(buffers.a),
                                  static_cast<const T*>(buffers.b), static_cast<T*>(buffers.sum),
                                  static_cast<T*>(buffers.y), buffers.scale, buffers.shift);
    cuda::with_width<kWidth>(packs, [&](auto width) {
      const TeamChoice team(rows.channels / width);
      if (!team.fits) {
        any_width_row_norm_forward(device_, type_, rows, buffers);
        return;
      }
      cuda::launch(device_.stream(),
                   {.blocks = blocks(rows, team, rows.count), .threads = team.threads},
                   team.warp ? forward_kernel<cuda::WarpTeam, width(), T, summed>
                             : forward_kernel<cuda::BlockTeam, width(), T, summed>,
                   rows, buffers);
    });
  }

  template <int width>
  void backward_in_strips(const NormRows& rows, const TeamChoice& team,
                          const RowNormBackward& buffers) {
    auto* sums = static_cast<float*>(device_.scratch(scratch_bytes(shape_)));
    const unsigned strips = blocks(rows, team, kMaxStrips);
    cuda::launch(device_.stream(), {.blocks = strips, .threads = team.threads},
                 team.warp ? backward_kernel<cuda::WarpTeam, width, T>
                           : backward_kernel<cuda::BlockTeam, width, T>,
                 rows, buffers, sums);
    cuda::launch(device_.stream(),
                 {.blocks = cuda::blocks_for(rows.channels, cuda::kWarpSize),
                  .blocks_y = buffers.shift_gradient == nullptr ? 1U : 2U,
                  .threads = kStripWarps * cuda::kWarpSize},
                 add_strips_kernel, rows.channels, std::int64_t{strips}, sums,
                 buffers.scale_gradient, buffers.shift_gradient);
  }

  cuda::Device& device_;
  const RowNormShape shape_;
  const DataType type_;
  const std::unique_ptr<Memory> statistics_;  // of each row of the last forward
};

}  // namespace

Result<std::unique_ptr<RowNormOp>> cuda_row_norm(cuda::Device& device, const RowNormShape& shape,
                                                 const PlanOptions& plan) {
  const std::int64_t rows = plan.max_samples * shape.input.height * shape.input.width;
  FETTLE_ASSIGN(std::unique_ptr<Memory> statistics,
                device.allocate(rows * std::int64_t{sizeof(RowStatistics)}));
  FETTLE_TRY(device.reserve_scratch(CudaRowNorm<float>::scratch_bytes(shape)));
  return cuda::with_type(plan.type, [&](auto zero) -> std::unique_ptr<RowNormOp> {
    return std::make_unique<CudaRowNorm<decltype(zero)>>(device, shape, plan.type,
                                                         std::move(statistics));
  });
}

}  // namespace fettle::kernels
