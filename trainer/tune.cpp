#include "trainer/tune.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

namespace fettle::trainer {
namespace {

using kernels::KernelTimer;
using kernels::cuda::LaunchConfig;
using kernels::cuda::LaunchConfigs;
using kernels::cuda::TunableKernel;

// Less is noise, and no reason to differ from other machines.
constexpr double kLeastGain = 1.02;

Result<TunedKernel> tune(KernelTimer& timer, const TunableKernel& kernel, std::int64_t elements) {
  TunedKernel tuned{kernel, 0, kernel.usual, std::numeric_limits<double>::infinity()};
  for (const LaunchConfig& config : kernels::cuda::candidates(kernel)) {
    FETTLE_ASSIGN(const double time, timer.microseconds(kernel.name, config, elements));
    if (time >= tuned.best_microseconds) continue;
    tuned.best = config;
    tuned.best_microseconds = time;
  }
  // The fastest of many was also the luckiest: both are measured once more, one after the other.
  FETTLE_ASSIGN(tuned.usual_microseconds, timer.microseconds(kernel.name, kernel.usual, elements));
  FETTLE_ASSIGN(tuned.best_microseconds, timer.microseconds(kernel.name, tuned.best, elements));
  if (tuned.best_microseconds * kLeastGain > tuned.usual_microseconds) {
    tuned.best = kernel.usual;
    tuned.best_microseconds = tuned.usual_microseconds;
  }
  return tuned;
}

std::string row(const std::array<std::string, 5>& cells) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%-24s %12s %12s %18s %8s\n", cells[0].c_str(),
                cells[1].c_str(), cells[2].c_str(), cells[3].c_str(), cells[4].c_str());
  return line.data();
}

std::string one_digit(double value, const char* unit = "") {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f%s", value, unit);
  return text.data();
}

Result<unsigned> count(const char* option, std::int64_t value) {
  if (value <= std::numeric_limits<int>::max()) return static_cast<unsigned>(value);
  return invalid(std::string(option) + " is " + std::to_string(value) +
                 ", expected a number that a GPU may take");
}

Result<LaunchConfig> config_of(const TunableKernel& kernel, const TimedLaunch& launch) {
  LaunchConfig config = kernel.usual;
  FETTLE_ASSIGN(config.threads, count("--threads", launch.threads.value_or(config.threads)));
  FETTLE_ASSIGN(config.blocks_per_multiprocessor,
                count("--blocks-per-multiprocessor",
                      launch.blocks_per_multiprocessor.value_or(config.blocks_per_multiprocessor)));
  FETTLE_TRY(kernels::cuda::check_config(kernel, config));
  return config;
}

// Beside what is kept already, unless that cannot be used.
Result<std::string> keep(const kernels::cuda::GpuKind& device, const TunableKernel& kernel,
                         const LaunchConfig& config) {
  Result<LaunchConfigs> kept = kernels::cuda::load_launch_configs(device);
  LaunchConfigs configs = kept.ok() ? std::move(kept).value() : LaunchConfigs{};
  configs.insert_or_assign(std::string(kernel.name), config);
  return kernels::cuda::save_launch_configs(device, configs);
}

}  // namespace

LaunchConfigs Tuning::configs() const {
  LaunchConfigs configs;
  for (const TunedKernel& tuned : kernels) {
    if (tuned.best != tuned.kernel.usual) configs.emplace(tuned.kernel.name, tuned.best);
  }
  return configs;
}

Result<Tuning> tune_kernels(KernelTimer& timer, std::int64_t elements,
                            const std::function<void(const std::string&)>& log) {
  Tuning tuning{timer.device(), elements, {}};
  const auto all = kernels::cuda::tunable_kernels();
  for (const TunableKernel& kernel : all) {
    log(std::to_string(tuning.kernels.size() + 1) + " of " + std::to_string(all.size()) + ": " +
        std::string(kernel.name) + ", " + std::to_string(kernels::cuda::candidates(kernel).size()) +
        " configurations");
    FETTLE_ASSIGN(const TunedKernel tuned, tune(timer, kernel, elements));
    tuning.kernels.push_back(tuned);
  }
  return tuning;
}

std::string to_text(const Tuning& tuning) {
  std::string text = tuning.device.name + ", " + std::to_string(tuning.elements) + " elements\n\n" +
                     row({"kernel", "default µs", "best µs", "threads x blocks", "gain"});
  for (const TunedKernel& tuned : tuning.kernels) {
    const double gain = 100 * (1 - tuned.best_microseconds / tuned.usual_microseconds);
    const bool is_usual = tuned.best == tuned.kernel.usual;
    text += row({std::string(tuned.kernel.name), one_digit(tuned.usual_microseconds),
                 one_digit(tuned.best_microseconds), kernels::cuda::to_text(tuned.best),
                 is_usual ? "-" : one_digit(gain, " %")});
  }
  return text + "\nBlocks are those of a multiprocessor; without them the work decides.\n";
}

Json to_json(const Tuning& tuning) {
  Json kernels = kernels::cuda::to_json(tuning.device, tuning.configs());
  Json times = Json::object();
  for (const TunedKernel& tuned : tuning.kernels) {
    times.set(tuned.kernel.name, Json::object({{"default_microseconds", tuned.usual_microseconds},
                                               {"best_microseconds", tuned.best_microseconds}}));
  }
  kernels.set("elements", tuning.elements);
  kernels.set("times", std::move(times));
  return kernels;
}

Result<Json> time_kernel(KernelTimer& timer, const TimedLaunch& launch) {
  FETTLE_ASSIGN(const TunableKernel kernel, kernels::cuda::find_tunable(launch.kernel));
  FETTLE_ASSIGN(const LaunchConfig config, config_of(kernel, launch));
  FETTLE_ASSIGN(const double time, timer.microseconds(kernel.name, config, launch.elements));
  Json line = Json::object(
      {{"microseconds", time}, {"kernel", kernel.name}, {"threads", std::int64_t{config.threads}}});
  if (kernel.goes_round()) {
    line.set("blocks_per_multiprocessor", std::int64_t{config.blocks_per_multiprocessor});
  }
  line.set("elements", launch.elements);
  line.set("device", timer.device().name);
  if (launch.keep) {
    FETTLE_ASSIGN(const std::string path, keep(timer.device(), kernel, config));
    line.set("kept_in", path);
  }
  return line;
}

}  // namespace fettle::trainer
