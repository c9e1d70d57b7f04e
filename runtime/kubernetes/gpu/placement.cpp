#include "runtime/kubernetes/gpu/placement.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/fields/quantity.h"
#include "api/gpu/gpu_slots.h"
#include "api/trial/display.h"

namespace fettle::kubernetes {
namespace {

using api::GpuEnforcement;
using api::GpuProfile;

constexpr double kNoise = 1e-6;  // rounding of doubles: 0.3 is 3 steps of 0.1
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kPercent = 100;
// A worker that is killed in the middle of a kernel can take its neighbours on the card with it
// (CUDA MPS up to 13.5), so it gets the time to drain.
constexpr double kGraceOfShares = 60;
constexpr std::int64_t kMostConsumers = 256;  // of one ResourceClaim (its status.reservedFor)

// The part of a profile that meets a request.
struct Fit {
  double gpus = 1;
  std::int64_t units = 1;        // steps of the profile's offer
  std::optional<double> memory;  // bytes of one card
};

std::string asked(const GpuRequest& request) {
  std::string text;
  if (request.count) text = "count " + std::to_string(*request.count);
  if (request.fraction) text = "fraction " + Json(*request.fraction).dump();
  if (request.memory) text = "memory " + api::format_quantity(*request.memory);
  return request.model.empty() ? text : text + " of model " + request.model;
}

// ---- Models ------------------------------------------------------------------------------------

// "NVIDIA-H100-80GB-HBM3" as " nvidia h100 80gb hbm3 ".
std::string normalised(const std::string& name) {
  std::string words = " ";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_word = std::isalnum(byte) != 0 || c == '.';
    if (is_word) words += static_cast<char>(std::tolower(byte));
    if (!is_word && words.back() != ' ') words += ' ';
  }
  return words.back() == ' ' ? words : words + ' ';
}

// Whether every card of the profile is of the model: a card that only may be is not enough.
bool has_model(const GpuProfile& profile, const std::string& model) {
  if (model.empty()) return true;
  const std::string words = normalised(model);
  const auto matches = [&](const std::string& name) {
    return normalised(name).find(words) != std::string::npos;
  };
  return !profile.models.empty() && std::ranges::all_of(profile.models, matches);
}

// ---- Fitting -----------------------------------------------------------------------------------

std::optional<Fit> fit_count(std::int64_t count, const GpuProfile& profile) {
  if (!profile.offers.count || count > *profile.offers.count) return std::nullopt;
  return Fit{static_cast<double>(count), count, profile.memory};
}

std::optional<Fit> fit_fraction(double fraction, const GpuProfile& profile) {
  const auto& offer = profile.offers.fraction;
  if (!offer || fraction > *api::largest_fraction(profile) + kNoise) return std::nullopt;
  const double steps = std::round(fraction / offer->step);
  // Only multiples of the step, because a fraction is met exactly.
  if (steps < 1 || std::abs(steps * offer->step - fraction) > kNoise) return std::nullopt;
  Fit fit{fraction, static_cast<std::int64_t>(steps), std::nullopt};
  if (api::is_one_slice(profile)) {
    // A MIG slice names its own memory: its fractions of memory and of compute differ.
    fit.memory = profile.offers.memory->step;
  } else if (profile.memory) {
    fit.memory = *profile.memory * fraction;
  }
  return fit;
}

// The smallest sufficient amount of the memory offer, or else of the fractions.
std::optional<Fit> fit_memory(double memory, const GpuProfile& profile) {
  const auto& offer = profile.offers.memory;
  if (!offer && (!profile.offers.fraction || !profile.memory)) return std::nullopt;
  if (memory > *api::largest_memory(profile) + kNoise) return std::nullopt;
  const double step = offer ? offer->step : *profile.memory * profile.offers.fraction->step;
  const double steps = std::max(1.0, std::ceil(memory / step - kNoise));  // at least as much
  Fit fit{.units = static_cast<std::int64_t>(steps), .memory = steps * step};
  if (api::is_one_slice(profile)) {
    // The fraction of compute: a MIG slice has another fraction of the card's memory.
    fit.gpus = profile.offers.fraction->step;
  } else {
    // check_gpu_profile guarantees profile.memory.
    fit.gpus = std::min(
        1.0, offer ? *fit.memory / *profile.memory : steps * profile.offers.fraction->step);
  }
  return fit;
}

std::optional<Fit> fit(const GpuRequest& request, const GpuProfile& profile) {
  if (!has_model(profile, request.model)) return std::nullopt;
  std::optional<Fit> found;  // exactly one of the next three applies
  if (request.count) found = fit_count(*request.count, profile);
  if (request.fraction) found = fit_fraction(*request.fraction, profile);
  if (request.memory) found = fit_memory(*request.memory, profile);
  if (!found || !profile.put.shared_claim) return found;
  // All trials of the Study share the device of one claim.
  const auto trials = static_cast<double>(request.parallelism);
  const bool room = trials * found->gpus <= 1 + kNoise && request.parallelism <= kMostConsumers;
  return room ? found : std::nullopt;
}

// ---- Placing -----------------------------------------------------------------------------------

api::GpuSlotValues slot_values(const GpuRequest& request, const Fit& fit) {
  api::GpuSlotValues values;
  values.count = request.count.value_or(1);
  values.units = fit.units;
  if (fit.memory) values.mib = static_cast<std::int64_t>(std::floor(*fit.memory / kMib + kNoise));
  if (request.count) return values;  // whole cards have no fraction
  values.fraction = fit.gpus;
  values.percent = static_cast<std::int64_t>(std::ceil(fit.gpus * kPercent - kNoise));
  return values;
}

std::map<std::string, std::string> filled(const std::map<std::string, std::string>& texts,
                                          const api::GpuSlotValues& values) {
  std::map<std::string, std::string> out;
  for (const auto& [key, text] : texts) out[key] = api::fill_slots(text, values);
  return out;
}

std::string reason_for(const GpuRequest& request, const GpuPlacement& placement,
                       std::size_t fitting) {
  std::string text = "profile " + placement.profile + " gives " + asked(request);
  if (placement.is_share()) text += ", " + api::short_number(placement.gpus) + " of a card";
  if (placement.memory && !request.count) {
    text += " with " +
            api::format_quantity(std::floor(static_cast<double>(*placement.memory) / kMib) * kMib);
  }
  text += placement.enforces == GpuEnforcement::kNothing
              ? "; nothing keeps a trial to its share"
              : "; enforced by the " + std::string(placement.enforces == GpuEnforcement::kHardware
                                                       ? "hardware"
                                                       : "limit on memory");
  if (fitting > 1) {
    text += "; of " + std::to_string(fitting) + " profiles that offer it none enforces more";
  }
  return text;
}

GpuPlacement placement_of(const GpuRequest& request, const GpuProfile& profile, const Fit& fit,
                          std::size_t fitting) {
  const api::GpuSlotValues values = slot_values(request, fit);
  GpuPlacement out;
  out.profile = profile.name;
  out.sharing = profile.sharing;
  out.enforces = profile.enforces;
  out.gpus = fit.gpus;
  if (fit.memory) out.memory = static_cast<std::int64_t>(*fit.memory);
  // No neighbour on the card, or a neighbour that the hardware keeps apart.
  const bool alone = !out.is_share() || profile.enforces == GpuEnforcement::kHardware;
  out.least_grace = alone ? 0 : kGraceOfShares;
  if (profile.put.limits.is_object()) {
    for (const auto& [resource, amount] : profile.put.limits.as_object()) {
      // A whole number or one slot (check_gpu_profile), which becomes a whole number.
      out.limits[resource] = api::fill_slots_in(amount, values).as_integer();
    }
  }
  out.labels = filled(profile.put.labels, values);
  out.annotations = filled(profile.put.annotations, values);
  out.node_selector = filled(profile.put.node_selector, values);
  out.env = filled(profile.put.env, values);
  out.tolerations = profile.put.tolerations;
  out.scheduler = profile.put.scheduler_name;
  out.runtime_class = profile.put.runtime_class;
  if (profile.put.claim.is_object()) out.claim = api::fill_slots_in(profile.put.claim, values);
  out.shared_claim = profile.put.shared_claim;
  out.why = reason_for(request, out, fitting);
  return out;
}

// ---- Refusing ----------------------------------------------------------------------------------

std::string fractions_of(const GpuProfile& profile) {
  constexpr int kMostSpelt = 8;
  const double step = profile.offers.fraction->step;
  const double most = *api::largest_fraction(profile);
  const int steps = static_cast<int>(std::lround(most / step));
  if (steps > kMostSpelt) {
    return "fraction " + api::short_number(step) + " to " + api::short_number(most) +
           " in steps of " + api::short_number(step);
  }
  std::string text = "fraction ";
  for (int i = 1; i <= steps; ++i) {
    if (i > 1) text += i == steps ? " or " : ", ";
    text += api::short_number(i * step);
  }
  return text;
}

std::string models_of(const GpuProfile& profile) {
  std::string text;
  for (const std::string& model : profile.models) text += (text.empty() ? "" : ", ") + model;
  return text;
}

void add_offers(const GpuProfile& profile, std::vector<std::string>& out) {
  std::string where = " (profile " + profile.name;
  if (!profile.models.empty()) where += ", " + models_of(profile);
  where += ')';
  const auto& offers = profile.offers;
  if (offers.count) {
    const std::string most = std::to_string(*offers.count);
    out.push_back((*offers.count == 1 ? "count 1" : "count 1 to " + most) + where);
  }
  if (offers.fraction) out.push_back(fractions_of(profile) + where);
  if (const auto most = api::largest_memory(profile)) {
    out.push_back("memory up to " + api::format_quantity(std::floor(*most / kMib) * kMib) + where);
  }
}

std::string reason_of_refusal(const GpuRequest& request, const std::vector<GpuProfile>& profiles) {
  const std::string found = "found " + asked(request);
  const auto fits_alone = [&](const GpuProfile& profile) {
    GpuRequest alone = request;
    alone.parallelism = 1;
    return fit(alone, profile).has_value();
  };
  // Then only the number of trials at once is too large for a shared claim (fit()).
  if (std::ranges::any_of(profiles, fits_alone)) {
    return found + " with budget.parallelism " + std::to_string(request.parallelism) +
           "; the profile that offers it has one claim for all trials of a Study, which is not "
           "enough for all of them at once";
  }
  const bool model_known = std::ranges::any_of(
      profiles, [&](const GpuProfile& profile) { return has_model(profile, request.model); });
  if (!model_known) return found + "; no GPU profile of this cluster is of that model";
  if (request.memory) {
    double most = 0;
    for (const GpuProfile& profile : profiles) {
      if (!has_model(profile, request.model)) continue;
      most = std::max(most, api::largest_memory(profile).value_or(0));
    }
    if (most > 0) {
      return found + ", which is more than any profile offers on one card, " +
             api::format_quantity(std::floor(most / kMib) * kMib);
    }
  }
  return found + ", which no GPU profile of this cluster offers";
}

}  // namespace

Error GpuRefusal::error() const {
  std::string message = "spec.trial.gpu: " + reason;
  if (!offers.empty()) {
    message += "; what can be had: ";
    for (std::size_t i = 0; i < offers.size(); ++i) {
      message += (i == 0 ? "" : "; ") + offers[i];
    }
  }
  return invalid(message);
}

std::optional<GpuRequest> gpu_request(const api::StudySpec& spec) {
  if (!spec.trial.gpu) return std::nullopt;
  const api::Gpu& gpu = *spec.trial.gpu;
  GpuRequest request;
  request.fraction = gpu.fraction;
  request.memory = gpu.memory;
  if (!gpu.fraction && !gpu.memory) request.count = gpu.count.value_or(1);
  request.model = gpu.model;
  request.workers = spec.trial.workers.max;
  request.parallelism = spec.budget.parallelism;
  return request;
}

std::variant<GpuPlacement, GpuRefusal> place(const GpuRequest& request,
                                             const std::vector<GpuProfile>& profiles) {
  // Two ranks on one card can deadlock in a collective.
  if (!request.count && request.workers > 1) {
    return GpuRefusal{"found " + asked(request) + " of a GPU with up to " +
                          std::to_string(request.workers) +
                          " workers, which may come to share one card and wait for each other for "
                          "ever; use count, or one worker",
                      {}};
  }
  const GpuProfile* chosen = nullptr;
  std::optional<Fit> how;
  std::size_t fitting = 0;
  for (const GpuProfile& profile : profiles) {
    const std::optional<Fit> found = fit(request, profile);
    if (!found) continue;
    ++fitting;
    // In ascending order: nothing, memory, hardware. A tie goes to the earlier profile.
    if (chosen != nullptr && profile.enforces <= chosen->enforces) continue;
    chosen = &profile;
    how = found;
  }
  if (chosen != nullptr) return placement_of(request, *chosen, *how, fitting);
  GpuRefusal refusal{reason_of_refusal(request, profiles), {}};
  for (const GpuProfile& profile : profiles) add_offers(profile, refusal.offers);
  return refusal;
}

std::optional<double> most_memory(const api::StudySpec& spec,
                                  const std::vector<GpuProfile>& profiles) {
  std::optional<double> most;
  for (const GpuProfile& profile : profiles) {
    const std::optional<double> offered = api::largest_memory(profile);
    const bool fits = offered && spec.trial.gpu && has_model(profile, spec.trial.gpu->model);
    if (fits) most = std::max(most.value_or(0), *offered);
  }
  return most;
}

Result<std::optional<GpuPlacement>> place_gpus(const api::StudySpec& spec,
                                               const std::vector<GpuProfile>& profiles) {
  const std::optional<GpuRequest> request = gpu_request(spec);
  if (!request) return std::optional<GpuPlacement>();
  auto placed = place(*request, profiles);
  if (const auto* refusal = std::get_if<GpuRefusal>(&placed)) return refusal->error();
  return std::optional(std::get<GpuPlacement>(std::move(placed)));
}

api::GpuChoice choice_of(const GpuPlacement& placement) {
  api::GpuChoice choice;
  choice.profile = placement.profile;
  choice.sharing = api::to_string(placement.sharing);
  choice.enforces = api::to_string(placement.enforces);
  choice.gpus = placement.gpus;
  if (placement.memory) choice.memory = static_cast<double>(*placement.memory);
  choice.reason = placement.why;
  return choice;
}

}  // namespace fettle::kubernetes
