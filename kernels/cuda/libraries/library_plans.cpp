#include "kernels/cuda/libraries/library_plans.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace fettle::kernels::cuda {
namespace {

bool times_plans() {
  const char* value = std::getenv("FETTLE_CUDA_PLANS");  // NOLINT(concurrency-mt-unsafe): read only
  return value == nullptr || std::string_view(value) != "first";
}

void warn(const Error& error) { std::fprintf(stderr, "warning: %s\n", error.message.c_str()); }

// Warns once about each file that cannot be used and each folder that cannot be written.
PlanChooser chooser_for(const GpuKind& kind) {
  const auto warn_once = [said = std::make_shared<std::set<std::string>>()](const Error& error) {
    if (said->insert(error.message).second) warn(error);
  };
  return PlanChooser(times_plans(),
                     PlanChooser::Shared{.keep =
                                             [=](const std::string& key, const TimedPlan& plan) {
                                               auto kept = keep_timed_plan(kind, key, plan);
                                               if (!kept.ok()) warn_once(kept.error());
                                               return kept.ok() ? std::move(kept).value() : plan;
                                             },
                                         .read =
                                             [=] {
                                               auto known = load_timed_plans(kind);
                                               if (!known.ok()) warn_once(known.error());
                                               return known.ok() ? std::move(known).value()
                                                                 : TimedPlans{};
                                             }});
}

}  // namespace

GpuKind kind_of(const Device& device) {
  const MachineFacts& facts = device.facts();
  return {facts.name, std::to_string(facts.major) + "." + std::to_string(facts.minor),
          version_text(facts.runtime_version), FETTLE_VERSION};
}

LibraryPlans::LibraryPlans(Device& device)
    : device_(device), chooser_(chooser_for(kind_of(device))) {}

}  // namespace fettle::kernels::cuda
