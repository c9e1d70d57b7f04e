// Bound by bytes: logits in, gradients out, once each (50,257 classes in 16 bits are 100 KB a row
// and direction). Two exponentials an element come near that bound, so they use the hardware's, and
// each element is read only twice.
//
// A team (team.h) reads its row once for the softmax. It keeps the row in shared memory, and in
// registers the largest logit so far with the sum of exponentials relative to it, which is rescaled
// whenever a larger logit appears (online softmax; Milakov, Gimelshein 2018). After one exchange
// between its threads, each turns its kept logits into gradients. Shared memory serves only as each
// thread's private store: no thread reads another's data. A row of more than 99 KB (which every GPU
// since 2020 can hold, an H100 twice) is read again instead, mostly from the second-level cache.
//
// With a teacher (LossTeacher) the first reading also takes the sums of exponentials of both rows,
// divided by the temperature; the second, which then reads the teacher's row again, sums the
// divergence from known logarithms, whose differences lose no digits.
//
// Rows may begin at any alignment if the class count is no multiple of eight. So packs lie on
// boundaries of 16 bytes of memory, not of the row: the row's first and last pack are partial, and
// read and written one by one.
//
// The sums: each team sums its rows' losses in double, in order, and the last block to end sums the
// teams. Neither the number of teams nor the order of that sum depends on the GPU.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/cuda/device_code/last_block.cuh"
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/device_code/team.h"
#include "kernels/cuda/operations.h"
#include "kernels/optimizer/step.h"

namespace fettle::kernels {
namespace {

using cuda::Pack;

constexpr int kMaxTeams = 2048;
constexpr int kMaxThreads = 512;
constexpr int kMaxSharedBytes = 99 * 1024;
constexpr float kLowest = -3.402823466e38F;  // finite: its distance to any logit is

struct LossSettings {
  std::int64_t samples = 0;
  int classes = 0;
  float label_smoothing = 0;
  const float* gradient_scale = nullptr;
  // Set for a step's last loss, which adds `sums` to the step's (LossOptions); else nullptr.
  const StepInput* step_input = nullptr;
  StepSums* step_sums = nullptr;
  float temperature = 1;
  float teacher_weight = 0;  // without a teacher: 0
};

// The sums of a team's rows.
struct TeamSums {
  double loss = 0;
  std::int64_t correct = 0;
};

// A row of `count` numbers as packs on boundaries of memory; the first pack begins `before` numbers
// ahead of the row.
template <int width>
struct RowPacks {
  template <class T>
  __device__ RowPacks(const T* row, int size)
      : count(size),
        before(static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % width)) {}

  __device__ int packs() const { return (before + count + width - 1) / width; }
  __device__ int first(int pack) const { return pack * width - before; }
  __device__ bool holds(int index) const { return index >= 0 && index < count; }
  __device__ bool whole(int pack) const { return first(pack) >= 0 && first(pack) + width <= count; }

  // Loads -infinity, whose exponential is 0, outside the row.
  template <class T>
  __device__ Pack<T, width> load(const T* row, int pack) const {
    if (whole(pack)) return cuda::load_pack<width>(row + first(pack));
    Pack<T, width> values;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const int index = first(pack) + i;
      values.at[i] = holds(index) ? row[index] : cuda::from_float<T>(-INFINITY);
    }
    return values;
  }

  template <class T>
  __device__ void store(const Pack<T, width>& values, int pack, T* row) const {
    if (whole(pack)) return cuda::store_pack(values, row + first(pack));
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const int index = first(pack) + i;
      if (holds(index)) row[index] = values.at[i];
    }
  }

  int count;
  int before;
};

// The state of a pass over a row.
struct Softmax {
  float largest = kLowest;
  float total = 0;       // of exp(z - largest)
  float deviations = 0;  // of z - label's z, where labels are smoothed
  bool beaten = false;   // a class that the argmax prefers to the label has been seen
};

// The label of a row and its logit.
struct Label {
  int index;
  float logit;
};

// Adds a pack of the row to `seen`. `smooth`: labels are smoothed. Outside the row `values` is
// -infinity (RowPacks::load), which neither adds to the total nor beats a label.
template <int width, class T>
__device__ void see(const Pack<T, width>& values, const RowPacks<width>& row, int pack,
                    const Label& label, bool smooth, Softmax& seen) {
  float largest = seen.largest;
#pragma unroll
  for (int i = 0; i < width; ++i) largest = fmaxf(largest, cuda::to_float(values.at[i]));
  if (largest > seen.largest) seen.total *= __expf(seen.largest - largest);
  seen.largest = largest;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const float z = cuda::to_float(values.at[i]);
    const int index = row.first(pack) + i;
    seen.total += __expf(z - largest);
    seen.beaten |= z > label.logit || (z == label.logit && index < label.index);
    if (smooth && row.holds(index)) seen.deviations += z - label.logit;
  }
}

// The state of a pass over a row and its teacher's: largest logits, and sums of exponentials of the
// distances to them, divided by the temperature.
struct Soft {
  float largest = kLowest;
  float total = 0;
  float teachers_largest = kLowest;
  float teachers_total = 0;
};

template <int width, class T>
__device__ void see_soft(const Pack<T, width>& values, float per_degree, float& largest,
                         float& total) {
  float now = largest;
#pragma unroll
  for (int i = 0; i < width; ++i) now = fmaxf(now, cuda::to_float(values.at[i]));
  if (now > largest) total *= __expf((largest - now) * per_degree);
  largest = now;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    total += __expf((cuda::to_float(values.at[i]) - now) * per_degree);
  }
}

// Combines the states of all threads of the team.
template <class Team>
__device__ Soft together(const Soft& mine, float per_degree) {
  Soft all;
  all.largest = Team::largest(mine.largest);
  all.total = Team::sum(mine.total * __expf((mine.largest - all.largest) * per_degree));
  all.teachers_largest = Team::largest(mine.teachers_largest);
  all.teachers_total = Team::sum(
      mine.teachers_total * __expf((mine.teachers_largest - all.teachers_largest) * per_degree));
  return all;
}

// Combines the states of all threads of the team.
template <class Team>
__device__ Softmax together(const Softmax& mine, bool smooth) {
  Softmax all;
  all.largest = Team::largest(mine.largest);
  all.total = Team::sum(mine.total * __expf(mine.largest - all.largest));
  all.deviations = smooth ? Team::sum(mine.deviations) : 0;
  all.beaten = Team::sum(mine.beaten ? 1.0F : 0.0F) > 0;
  return all;
}

// Uses z - largest = (z - label's) - (largest - label's).
__device__ double loss_of(const LossSettings& settings, const Softmax& seen, const Label& label) {
  const double label_loss =
      log(static_cast<double>(seen.total)) + (static_cast<double>(seen.largest) - label.logit);
  const double mean_deviation = static_cast<double>(seen.deviations) / settings.classes;
  return label_loss - static_cast<double>(settings.label_smoothing) * mean_deviation;
}

// Turns logits into gradients.
struct Gradients {
  __device__ Gradients(const LossSettings& settings, const Softmax& seen)
      : largest(seen.largest),
        inverse_total(1 / seen.total),
        spread(settings.label_smoothing / static_cast<float>(settings.classes)),
        peak(1 - settings.label_smoothing),
        scale(settings.gradient_scale == nullptr ? 1 : *settings.gradient_scale) {}

  // The gradient of the class `index`, which has this logit.
  __device__ float of(float z, int index, int label) const {
    const float probability = __expf(z - largest) * inverse_total;
    const float target = spread + (index == label ? peak : 0);
    return scale * (probability - target);
  }

  template <int width, class T>
  __device__ Pack<T, width> of(const Pack<T, width>& values, int first, int label) const {
    Pack<T, width> result;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      result.at[i] = cuda::from_float<T>(of(cuda::to_float(values.at[i]), first + i, label));
    }
    return result;
  }

  float largest, inverse_total, spread, peak, scale;
};

// Turns the logits of student and teacher into gradients of the whole loss; sums the divergence.
struct SoftGradients {
  __device__ SoftGradients(const LossSettings& settings, const Soft& seen)
      : per_degree(1 / settings.temperature),
        shift(seen.largest * per_degree + logf(seen.total)),
        teachers_shift(seen.teachers_largest * per_degree + logf(seen.teachers_total)),
        weight(settings.teacher_weight),
        factor(settings.teacher_weight * settings.temperature *
               (settings.gradient_scale == nullptr ? 1 : *settings.gradient_scale)) {}

  // The gradient of one class of the row, whose gradient without a teacher is `hard`.
  __device__ float of(float z, float teachers_z, float hard) {
    const float log_q = z * per_degree - shift;
    const float log_r = teachers_z * per_degree - teachers_shift;
    const float r = __expf(log_r);
    divergence += r * (log_r - log_q);
    return (1 - weight) * hard + factor * (__expf(log_q) - r);
  }

  float per_degree, shift, teachers_shift, weight, factor;
  float divergence = 0;  // of this thread's classes
};

// Whether the argmax of a row with NaN is another class than the label. As in the reference's
// std::max_element, nothing beats a NaN in the first place, and a NaN elsewhere beats nothing.
template <class T>
__device__ bool beaten_by_nan(const T* z, const Label& label) {
  return label.index != 0 && (std::isnan(label.logit) || std::isnan(cuda::to_float(z[0])));
}

// Calls visit(pack) for this thread's packs of a row.
template <class Team, int width, class Visit>
__device__ __forceinline__ void for_each_pack(const RowPacks<width>& row, Visit visit) {
  for (int pack = Team::rank(); pack < row.packs(); pack += Team::size()) visit(pack);
}

// Processes one row; `shared` keeps it, if `kept`. `dz` may be nullptr, or z.
template <class Team, int width, bool kept, class T>
__device__ Softmax run_row(const LossSettings& settings, const T* z, const Label& label, T* dz,
                           Pack<T, width>* shared) {
  const RowPacks<width> row(z, settings.classes);
  const bool smooth = settings.label_smoothing != 0;
  Softmax mine;
  for_each_pack<Team>(row, [&](int pack) {
    const Pack<T, width> values = row.load(z, pack);
    if constexpr (kept) shared[pack] = values;
    see(values, row, pack, label, smooth, mine);
  });
  Softmax seen = together<Team>(mine, smooth);
  // Comparisons in `see` are false for NaN, but any NaN makes the total NaN. Only the first
  // thread's answer counts. It reads z[0], which lies in its own pack, so even if dz is z, no
  // gradient has replaced it yet.
  if (Team::rank() == 0 && std::isnan(seen.total)) seen.beaten |= beaten_by_nan(z, label);
  if (dz == nullptr) return seen;  // evaluation
  const Gradients gradients(settings, seen);
  for_each_pack<Team>(row, [&](int pack) {
    const Pack<T, width> values = kept ? shared[pack] : row.load(z, pack);
    row.store(gradients.of(values, row.first(pack), label.index), pack, dz);
  });
  return seen;
}

// A pack of the row and its teacher's, and the gradients, if wanted.
template <int width, class T>
__device__ void distil_pack(const Gradients& gradients, SoftGradients& soft,
                            const RowPacks<width>& row, int pack, int label,
                            const Pack<T, width>& values, const Pack<T, width>& teachers, T* dz) {
  Pack<T, width> result = values;  // outside the row nothing is stored
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const int index = row.first(pack) + i;
    if (!row.holds(index)) continue;
    const float z = cuda::to_float(values.at[i]);
    const float hard = gradients.of(z, index, label);
    result.at[i] = cuda::from_float<T>(soft.of(z, cuda::to_float(teachers.at[i]), hard));
  }
  if (dz != nullptr) row.store(result, pack, dz);
}

// Processes one row with its teacher's, as run_row. `loss` receives the whole loss.
template <class Team, int width, bool kept, class T>
__device__ Softmax distil_row(const LossSettings& settings, const T* z, const T* teachers,
                              const Label& label, T* dz, Pack<T, width>* shared, double& loss) {
  const RowPacks<width> row(z, settings.classes);
  const RowPacks<width> teachers_row(teachers, settings.classes);  // begins at the same place
  const bool smooth = settings.label_smoothing != 0;
  const float per_degree = 1 / settings.temperature;
  Softmax mine;
  Soft my_soft;
  for_each_pack<Team>(row, [&](int pack) {
    const Pack<T, width> values = row.load(z, pack);
    if constexpr (kept) shared[pack] = values;
    see(values, row, pack, label, smooth, mine);
    see_soft(values, per_degree, my_soft.largest, my_soft.total);
    see_soft(teachers_row.load(teachers, pack), per_degree, my_soft.teachers_largest,
             my_soft.teachers_total);
  });
  Softmax seen = together<Team>(mine, smooth);
  if (Team::rank() == 0 && std::isnan(seen.total)) seen.beaten |= beaten_by_nan(z, label);
  const Gradients gradients(settings, seen);
  SoftGradients soft(settings, together<Team>(my_soft, per_degree));
  for_each_pack<Team>(row, [&](int pack) {
    const Pack<T, width> values = kept ? shared[pack] : row.load(z, pack);
    distil_pack(gradients, soft, row, pack, label.index, values, teachers_row.load(teachers, pack),
                dz);
  });
  const double divergence = Team::sum(soft.divergence);
  const double temperature = settings.temperature;
  const double weight = settings.teacher_weight;
  loss = (1 - weight) * loss_of(settings, seen, label) +
         weight * temperature * temperature * divergence;
  return seen;
}

// Sums all teams' sums in the last block, in the same order for blocks of any size.
__device__ void add_teams(const LossSettings& settings, const TeamSums* team_sums, int teams,
                          LossSums* sums) {
  const double loss = cuda::sum_as_block_of<kMaxThreads>(
      teams, [team_sums](int i) { return __ldcg(&team_sums[i].loss); });
  const std::int64_t correct = cuda::sum_as_block_of<kMaxThreads>(
      teams, [team_sums](int i) { return __ldcg(&team_sums[i].correct); });
  if (threadIdx.x > 0) return;
  sums->loss += loss;
  sums->correct += correct;
  sums->samples += settings.samples;
  if (settings.step_sums == nullptr) return;
  add_and_clear(*sums, *settings.step_input, *settings.step_sums);
}

// `packs`: maximum packs of a row. `sums`: the sums to which the rows are added. Labels are below
// settings.classes: reading the data set checks it (trainer/data/image_set.h).
// `teachers`: the teacher's logits if `distils`, else not read. Two rows in flight take more than
// the 64 registers that two blocks on a multiprocessor leave to a thread.
template <class Team, int width, bool kept, bool distils, class T>
__global__ void __launch_bounds__(kMaxThreads, distils ? 1 : 2)
    loss_kernel(LossSettings settings, int packs, const T* logits, const T* teachers,
                const std::int32_t* labels, T* dlogits, TeamSums* team_sums, unsigned* counter,
                LossSums* sums) {
  using PackOfRow = Pack<T, width>;
  FETTLE_DYNAMIC_SHARED(PackOfRow, shared);
  TeamSums mine;
  for (std::int64_t s = cuda::team_index<Team>(); s < settings.samples;
       s += cuda::team_count<Team>()) {
    const T* z = logits + s * settings.classes;
    const Label label{labels[s], cuda::to_float(z[labels[s]])};
    T* dz = dlogits == nullptr ? nullptr : dlogits + s * settings.classes;
    PackOfRow* const row = shared + Team::index() * packs;
    Softmax seen;
    double loss = 0;
    if constexpr (distils) {
      seen = distil_row<Team, width, kept>(settings, z, teachers + s * settings.classes, label, dz,
                                           row, loss);
    } else {
      seen = run_row<Team, width, kept>(settings, z, label, dz, row);
    }
    if (Team::rank() != 0) continue;
    mine.loss += distils ? loss : loss_of(settings, seen, label);
    mine.correct += seen.beaten ? 0 : 1;
  }
  if (Team::rank() == 0) team_sums[cuda::team_index<Team>()] = mine;
  if (!cuda::is_last_block(gridDim.x, counter)) return;
  add_teams(settings, team_sums, static_cast<int>(cuda::team_count<Team>()), sums);
}

// ---- On the host -------------------------------------------------------------------------------

// The team that shares a row of at most `packs` packs.
struct TeamChoice {
  TeamChoice(int packs, std::size_t pack_bytes)
      : warp(packs <= kPacksOfWarp),
        threads(warp ? kWarps * cuda::kWarpSize : kMaxThreads),
        teams_of_block(warp ? kWarps : 1),
        shared_bytes(static_cast<std::size_t>(teams_of_block * packs) * pack_bytes),
        kept(shared_bytes <= kMaxSharedBytes) {}
  static constexpr int kPacksOfWarp = 256;  // with kWarps 16 KB of shared memory: always kept
  static constexpr int kWarps = 4;          // divides kMaxTeams: whole blocks have no more teams
  bool warp;
  int threads;
  int teams_of_block;
  std::size_t shared_bytes;
  bool kept;
};

template <class T>
class CudaSoftmaxCrossEntropy : public SoftmaxCrossEntropyOp {
 public:
  CudaSoftmaxCrossEntropy(cuda::Device& device, std::int64_t classes)
      : device_(device), classes_(static_cast<int>(classes)) {
    constexpr std::int64_t kMaxClasses = 1 << 30;
    CHECK(classes > 0 && classes <= kMaxClasses, "a loss has between 1 and 2^30 classes");
    // Both grow their memory now: a constructor cannot report a failed reserve.
    team_sums();
    device_.counters(1);
    // CUDA requires an opt-in beyond 48 KB. Warps never need it (TeamChoice).
    for (auto* kernel : {loss_kernel<cuda::BlockTeam, kWidth, true, false, T>,
                         loss_kernel<cuda::BlockTeam, kWidth, true, true, T>,
                         loss_kernel<cuda::BlockTeam, 1, true, false, T>,
                         loss_kernel<cuda::BlockTeam, 1, true, true, T>}) {
      cuda::must_succeed(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              kMaxSharedBytes));
    }
  }

  void run(std::int64_t samples, ConstBuffer logits, const std::int32_t* labels,
           const LossOptions& options, LossSums* sums, Buffer dlogits) override {
    const LossSettings settings{samples,
                                classes_,
                                options.label_smoothing,
                                options.gradient_scale,
                                options.step_input,
                                options.step_sums,
                                options.teacher.temperature,
                                options.teacher.weight};
    const auto* z = static_cast<const T*>(logits);
    const auto* teachers = static_cast<const T*>(options.teacher.logits);
    auto* dz = static_cast<T*>(dlogits);
    // Rows may begin anywhere, but all must begin at the same place of a pack.
    const bool packs = cuda::is_aligned<kWidth>(z) && cuda::is_aligned<kWidth>(dz) &&
                       cuda::is_aligned<kWidth>(teachers);
    cuda::with_width<kWidth>(packs, [&](auto width) {
      if (teachers == nullptr) {
        launch_rows<width(), /*distils=*/false>(settings, z, teachers, labels, dz, sums);
      } else {
        launch_rows<width(), /*distils=*/true>(settings, z, teachers, labels, dz, sums);
      }
    });
  }

 private:
  static constexpr int kWidth = cuda::kPackWidth<T>;

  TeamSums* team_sums() {
    return static_cast<TeamSums*>(device_.scratch(kMaxTeams * std::int64_t{sizeof(TeamSums)}));
  }

  template <int width, bool distils>
  void launch_rows(const LossSettings& settings, const T* logits, const T* teachers,
                   const std::int32_t* labels, T* dlogits, LossSums* sums) {
    // A row that begins within a pack may end in one more.
    const int packs = (classes_ + width - 1) / width + (classes_ % width == 0 ? 0 : 1);
    const TeamChoice team(packs, sizeof(Pack<T, width>));
    const std::int64_t teams = std::min<std::int64_t>(settings.samples, kMaxTeams);
    const cuda::LaunchShape shape{
        .blocks = cuda::blocks_for(teams, static_cast<unsigned>(team.teams_of_block)),
        .threads = static_cast<unsigned>(team.threads),
        .shared_bytes = team.kept ? team.shared_bytes : 0};
    auto* kernel = loss_kernel<cuda::BlockTeam, width, false, distils, T>;
    if (team.kept) kernel = loss_kernel<cuda::BlockTeam, width, /*kept=*/true, distils, T>;
    // Warps always keep the row in shared memory (TeamChoice).
    if (team.warp) kernel = loss_kernel<cuda::WarpTeam, width, /*kept=*/true, distils, T>;
    cuda::launch(device_.stream(), shape, kernel, settings, packs, logits, teachers, labels,
                 dlogits, team_sums(), device_.counters(1), sums);
  }

  cuda::Device& device_;
  const int classes_;
};

}  // namespace

std::unique_ptr<SoftmaxCrossEntropyOp> cuda_softmax_cross_entropy(cuda::Device& device,
                                                                  std::int64_t classes,
                                                                  DataType type) {
  return cuda::with_type(type, [&](auto zero) -> std::unique_ptr<SoftmaxCrossEntropyOp> {
    return std::make_unique<CudaSoftmaxCrossEntropy<decltype(zero)>>(device, classes);
  });
}

}  // namespace fettle::kernels
