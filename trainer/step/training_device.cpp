#include "trainer/step/training_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "api/fields/enum_names.h"
#include "base/machine/cuda_support.h"
#include "base/machine/usable.h"

namespace fettle::trainer {
namespace {

// Whether this machine's GPUs are hidden from the process on purpose, as `fettle run` does for
// trials that request none.
bool hides_gpus() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
  if (visible == nullptr) return false;
  return *visible == '\0' || std::string_view(visible) == "-1";
}

// Warns once: a process may open its backend several times.
void warn_of_unused_gpu(const Error& reason) {
  if (hides_gpus()) return;
  static std::once_flag once;
  std::call_once(once, [&] {
    const std::string warning = machine::unused_gpu_warning(machine::find_gpus(), reason.message);
    if (!warning.empty()) std::fprintf(stderr, "WARNING: %s\n", warning.c_str());
  });
}

bool same(const kernels::PlanOptions& a, const kernels::PlanOptions& b) {
  return a.max_samples == b.max_samples && a.type == b.type && a.tf32 == b.tf32 &&
         a.deterministic == b.deterministic;
}

}  // namespace

// Opens the fastest backend of this machine. fp16 on a CPU serves only to try out a GPU's results;
// only the reference backend has it there.
Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config) {
  using api::BackendKind;
  const auto open = [&config](BackendKind kind) {
    return kernels::make_backend(api::to_string(kind), static_cast<int>(config.threads));
  };
  if (config.backend != BackendKind::kAuto) return open(config.backend);
  auto gpu = open(BackendKind::kCuda);
  if (gpu.ok()) return gpu;
  warn_of_unused_gpu(gpu.error());
  auto fast = open(BackendKind::kOnednn);
  if (fast.ok() && config.precision != api::Precision::kFp16) return fast;
  return open(BackendKind::kReference);
}

AvailableMemory available_memory(const kernels::Backend& backend, std::int64_t processes) {
  return {machine::usable_memory() / processes, !backend.shares_memory(), backend.free_memory()};
}

AvailableMemory available_memory(const api::TrainingConfig& config, std::int64_t processes) {
  // No backend is open to tell the memory of a device: {}.
  return {machine::usable_memory() / processes, config.backend == api::BackendKind::kCuda, {}};
}

Result<std::unique_ptr<TrainingDevice>> TrainingDevice::open(const api::TrainingConfig& config) {
  FETTLE_ASSIGN(auto backend, open_backend(config));
  return std::make_unique<TrainingDevice>(std::move(backend));
}

Result<Network*> TrainingDevice::network(const NetworkPlan& plan,
                                         const kernels::PlanOptions& options, std::uint64_t seed,
                                         bool recompute, const std::optional<Range>& shard) {
  const bool fits = network_ != nullptr && plan == plan_ && recompute == recompute_ &&
                    same(options, network_->options());
  reused_ = fits;
  if (fits) {
    FETTLE_TRY(network_->restart(seed, shard));
    return network_.get();
  }
  network_.reset();  // frees its memory for the next network
  // The memory of network and workspace is measured as the drop in free memory: the next training
  // may plan with it (kept_bytes).
  network_bytes_ = 0;
  FETTLE_ASSIGN(const std::optional<kernels::Workspace> needed, workspace(plan, options));
  if (needed) FETTLE_TRY(reserve(*needed));
  const std::int64_t before = free_memory();
  FETTLE_ASSIGN(network_, Network::create(plan, *backend_, options, seed, recompute, shard));
  plan_ = plan;
  recompute_ = recompute;
  network_bytes_ = before - free_memory();
  return network_.get();
}

Status TrainingDevice::reserve(const kernels::Workspace& needed) {
  const std::int64_t without = free_memory();
  FETTLE_TRY(backend_->reserve_workspace(needed));
  // Smaller, earlier blocks stay (reserve_workspace), but another network cannot use them: only new
  // memory counts as kept.
  if (const std::int64_t grown = without - free_memory(); grown > 0) workspace_bytes_ = grown;
  return success();
}

Result<std::optional<kernels::Workspace>> TrainingDevice::workspace(
    const NetworkPlan& plan, const kernels::PlanOptions& options) {
  if (backend_->shares_memory()) return std::optional<kernels::Workspace>();
  if (workspace_ && asked_plan_ == plan && same(asked_options_, options)) return workspace_;
  FETTLE_ASSIGN(workspace_, Network::workspace(plan, *backend_, options));
  asked_plan_ = plan;
  asked_options_ = options;
  return workspace_;
}

Result<std::optional<kernels::Workspace>> workspaces_of(TrainingDevice& device,
                                                        const NetworkPlan& plan,
                                                        const NetworkPlan* teacher,
                                                        const kernels::PlanOptions& options) {
  FETTLE_ASSIGN(auto needed, device.workspace(plan, options));
  if (!needed || teacher == nullptr) return needed;
  kernels::PlanOptions forward = options;
  forward.input_gradient = false;
  FETTLE_ASSIGN(const kernels::Workspace other,
                Network::workspace(*teacher, device.backend(), forward));
  needed->shared = std::max(needed->shared, other.shared);
  needed->branch = std::max(needed->branch, other.branch);
  needed->own += other.own;
  return needed;
}

Result<kernels::Samples> TrainingDevice::hold(const ImageSet& images) {
  kernels::Samples samples = images.samples();
  // Not by address: another set may lie where a freed one was.
  if (held_ != images.serial()) {
    release_samples();
    const std::int64_t before = free_memory();
    using Pixels = kernels::DeviceArray<std::uint8_t>;
    using Labels = kernels::DeviceArray<std::int32_t>;
    FETTLE_ASSIGN(pixels_, Pixels::create(*backend_, images.pixel_bytes()));
    const auto* const pixels = static_cast<const std::uint8_t*>(samples.pixels);
    pixels_.upload({pixels, static_cast<std::size_t>(images.pixel_bytes())});
    if (samples.labels != nullptr) {  // null for a text, whose labels are its next tokens
      FETTLE_ASSIGN(labels_, Labels::create(*backend_, images.size()));
      labels_.upload({samples.labels, static_cast<std::size_t>(images.size())});
    }
    held_ = images.serial();
    sample_bytes_ = before - free_memory();
  }
  samples.pixels = pixels_.data();
  if (samples.labels != nullptr) samples.labels = labels_.data();
  return samples;
}

void TrainingDevice::release_samples() {
  held_ = 0;
  pixels_ = {};
  labels_ = {};
  sample_bytes_ = 0;
}

}  // namespace fettle::trainer
