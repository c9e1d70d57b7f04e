#include "trainer/step/device_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/trial/metric_names.h"

namespace fettle::trainer {

namespace metric = api::metric;

namespace {

struct Group {
  kernels::Implementation pass;
  std::vector<std::string> layers;
};

// Ignores the operation, which differs by the layer's shape.
bool same(const kernels::Implementation& a, const kernels::Implementation& b) {
  return a.pass == b.pass && a.by == b.by && a.fused == b.fused && a.reason == b.reason;
}

}  // namespace

std::optional<double> peak_flops_of(const kernels::DeviceIdentity& device,
                                    api::Precision precision) {
  const std::optional<machine::GpuPeak> peak = machine::peak_of_gpu(device.name);
  if (!peak) return std::nullopt;
  switch (precision) {
    case api::Precision::kFp32:
      return peak->fp32_exact;
    case api::Precision::kAuto:  // on a GPU
    case api::Precision::kTf32:
      return peak->fp32;
    default:  // bf16, fp16
      return peak->bits16;
  }
}

Metrics compute_metrics(double model_flops, double seconds, std::optional<double> peak,
                        std::int64_t workers) {
  const double rate = model_flops / seconds;
  Metrics metrics;
  metrics.emplace_back(metric::kFlops, rate);
  if (peak) metrics.emplace_back(metric::kMfu, rate / (*peak * static_cast<double>(workers)));
  return metrics;
}

Metrics gpu_metrics(const machine::GpuUse& use) {
  Metrics metrics;
  if (use.utilization) metrics.emplace_back(metric::kGpuUtilization, *use.utilization);
  if (use.memory) metrics.emplace_back(metric::kGpuMemory, *use.memory);
  if (use.power) metrics.emplace_back(metric::kGpuPower, *use.power);
  if (use.energy) metrics.emplace_back(metric::kGpuEnergy, *use.energy);
  return metrics;
}

void append(Metrics& metrics, const Metrics& more) {
  metrics.insert(metrics.end(), more.begin(), more.end());
}

Json to_json(const std::vector<LayerImplementation>& implementations) {
  std::vector<Group> groups;
  for (const LayerImplementation& one : implementations) {
    const auto found = std::ranges::find_if(
        groups, [&](const Group& group) { return same(group.pass, one.pass); });
    if (found == groups.end()) {
      groups.push_back({one.pass, {one.layer}});
    } else {
      found->layers.push_back(one.layer);
    }
  }
  Json all = Json::array();
  for (const Group& group : groups) {
    Json json = Json::object({{"pass", group.pass.pass}, {"by", group.pass.by}});
    if (!group.pass.fused.empty()) json.set("fused", group.pass.fused);
    if (!group.pass.reason.empty()) json.set("reason", group.pass.reason);
    Json layers = Json::array();
    for (const std::string& layer : group.layers) layers.push_back(layer);
    json.set("layers", std::move(layers));
    all.push_back(std::move(json));
  }
  return all;
}

std::int64_t fallbacks(const std::vector<LayerImplementation>& implementations) {
  return std::ranges::count_if(
      implementations, [](const LayerImplementation& one) { return !one.pass.reason.empty(); });
}

}  // namespace fettle::trainer
