// Rules for a GPU profile beyond the bounds of its fields: it offers something, says how to get it,
// and contradicts neither itself nor the software that shares the cards. Slots: gpu_slots.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "api/fields/enum_names.h"
#include "api/fields/field.h"
#include "api/fields/label_syntax.h"
#include "api/fields/quantity.h"
#include "api/gpu/gpu_profile.h"
#include "api/gpu/gpu_slots.h"

namespace fettle::api {
namespace {

// Domains of labels and annotations with another meaning to the programs that read them.
constexpr std::array<std::string_view, 3> kTakenDomains{"fettle.dev/", "batch.kubernetes.io/",
                                                        "kueue.x-k8s.io/"};
constexpr std::string_view kOurVariables = "FETTLE_";
constexpr std::string_view kNvidiaGpu = "nvidia.com/gpu";
constexpr double kNoise = 1e-9;

class Checker {
 public:
  Checker(const GpuProfile& profile, const FieldPath& path, FieldErrors& errors)
      : profile_(profile), path_(path), errors_(errors) {}

  void check() {
    check_offers();
    check_honesty();
    check_put();
    check_rules_of_sharing();
  }

 private:
  // ---- The offer -------------------------------------------------------------------------------

  void check_offers() {
    const auto& [count, fraction, memory] = profile_.offers;
    const FieldPath path = path_.member("offers");
    if (!count && !fraction && !memory) {
      errors_.add(path, "has none of count, fraction and memory; expected at least one of them");
    }
    if (fraction && fraction->max && *fraction->max < fraction->step - kNoise) {
      errors_.add(path.member("fraction"), "found max " + describe(*fraction->max) +
                                               ", expected at least step, which is " +
                                               describe(fraction->step));
    }
    // A MIG slice has both a fraction and a memory, and the largest slice is a whole card.
    if (fraction && fraction->step == 1 && !memory) {
      errors_.add(path.member("fraction"),
                  "found step 1, which is a whole GPU; expected count: 1 instead");
    }
    if (memory) check_memory(*memory, path.member("memory"));
  }

  void check_memory(const GpuMemories& memory, const FieldPath& path) {
    if (memory.max && *memory.max < memory.step) {
      errors_.add(path, "found max " + format_quantity(*memory.max) +
                            ", expected at least step, which is " + format_quantity(memory.step));
    }
    // A single slice states its part of a GPU itself.
    if (!profile_.memory && !is_one_slice(profile_)) {
      errors_.add(path_.member("memory"),
                  "is missing; offers.memory needs the memory of one card, which says what part of "
                  "a GPU an amount is");
      return;
    }
    const double most = std::max(memory.step, memory.max.value_or(0));
    if (profile_.memory && most > *profile_.memory) {
      errors_.add(path, "found " + format_quantity(most) + ", which is more than one card has (" +
                            format_quantity(*profile_.memory) + ")");
    }
  }

  // Refuses promises that this way of sharing does not keep: they would mislead every trial.
  void check_honesty() {
    const GpuSharing sharing = profile_.sharing;
    const bool unit_is_a_part = sharing == GpuSharing::kMps || sharing == GpuSharing::kTimeSlicing;
    const FieldPath offers = path_.member("offers");
    if (unit_is_a_part && profile_.offers.count) {
      errors_.add(
          offers.member("count"),
          "found with sharing " + std::string(to_string(sharing)) +
              ", where one unit is a part of a card, and two may be the same card; expected "
              "fraction");
    }
    if (unit_is_a_part && profile_.offers.fraction && !is_single(*profile_.offers.fraction)) {
      errors_.add(offers.member("fraction"),
                  "offers several sizes with sharing " + std::string(to_string(sharing)) +
                      ", where two units may be on two cards; expected max equal to step");
    }
    if (sharing == GpuSharing::kWhole && profile_.offers.fraction) {
      errors_.add(offers.member("fraction"),
                  "found with sharing Whole; expected the way in which the cards are shared");
    }
    const GpuEnforcement most = most_enforced(sharing);
    if (profile_.enforces > most) {  // ordered from the weakest to the strongest
      errors_.add(path_.member("enforces"), "found " + std::string(to_string(profile_.enforces)) +
                                                "; sharing " + std::string(to_string(sharing)) +
                                                " enforces " + std::string(to_string(most)) +
                                                " at most");
    }
  }

  static bool is_single(const GpuFractions& fraction) {
    return fraction.max && std::abs(*fraction.max - fraction.step) < kNoise;
  }

  static GpuEnforcement most_enforced(GpuSharing sharing) {
    switch (sharing) {
      case GpuSharing::kTimeSlicing:
        return GpuEnforcement::kNothing;
      case GpuSharing::kMps:
      case GpuSharing::kKai:
      case GpuSharing::kHami:
        return GpuEnforcement::kMemory;
      default:  // whole cards, or parts that may be MIG slices
        return GpuEnforcement::kHardware;
    }
  }

  // ---- Fields for the pod ----------------------------------------------------------------------

  void check_put() {
    const GpuPut& put = profile_.put;
    const FieldPath path = path_.member("put");
    const bool limits = put.limits.is_object() && !put.limits.as_object().empty();
    const bool claim = put.claim.is_object() && !put.claim.as_object().empty();
    const bool notes = !put.annotations.empty() || !put.labels.empty();
    if (!limits && !claim && !notes) {
      errors_.add(path,
                  "asks for nothing; expected limits, a claim, or annotations with the name of "
                  "the scheduler that reads them");
    } else if (!limits && !claim && put.scheduler_name.empty()) {
      errors_.add(
          path.member("schedulerName"),
          "is missing; without limits or a claim only a scheduler that reads the annotations "
          "gives the pod a GPU");
    }
    if (put.limits.is_object()) check_limits(path.member("limits"));
    check_texts(put.labels, path.member("labels"), /*is_label=*/true);
    check_texts(put.annotations, path.member("annotations"), /*is_label=*/false);
    check_texts(put.node_selector, path.member("nodeSelector"), /*is_label=*/true);
    check_env(path.member("env"));
    check_claim(path.member("claim"));
  }

  void check_limits(const FieldPath& path) {
    for (const auto& [resource, amount] : profile_.put.limits.as_object()) {
      const FieldPath item = path.member(resource);
      if (!is_label_key(resource) || resource.find('/') == std::string::npos) {
        errors_.add(item, "expected the name of an extended resource, such as nvidia.com/gpu");
      } else if (amount.is_string()) {
        check_amount(amount.as_string(), item);
      } else if (!amount.is_integer() || amount.as_integer() < 1) {
        errors_.add(item, "found " + describe(amount) +
                              ", expected a whole number above 0, or one slot, such as {count}");
      }
    }
  }

  void check_amount(const std::string& amount, const FieldPath& path) {
    if (!check_slots(slots_of(amount), path)) return;
    if (amount == "{count}" || amount == "{percent}" || amount == "{mib}" || amount == "{units}") {
      return;
    }
    errors_.add(path, "found " + describe(Json(amount)) +
                          ", expected a whole number, or one of {count}, {percent}, {mib} and "
                          "{units} alone: extended resources are counted");
  }

  void check_texts(const std::map<std::string, std::string>& texts, const FieldPath& path,
                   bool is_label) {
    for (const auto& [key, text] : texts) {
      const FieldPath item = path.member(key);
      // Slots are checked before they are filled: fill_slots() requires known slots.
      const bool taken = std::ranges::any_of(
          kTakenDomains, [&key = key](auto domain) { return key.starts_with(domain); });
      if (taken) {
        errors_.add(item, "is written by others; expected a key of what shares the GPUs");
      } else if (check_slots(slots_of(text), item) && is_label &&
                 !is_label_value(with_example_numbers(text))) {
        errors_.add(item, "found " + describe(Json(text)) + ", expected the value of a label");
      }
    }
  }

  void check_env(const FieldPath& path) {
    for (const auto& [name, text] : profile_.put.env) {
      const FieldPath item = path.member(name);
      if (name.starts_with(kOurVariables)) {
        errors_.add(item, "is Fettle's own; expected another variable");
      } else if (name.empty() || name.find('=') != std::string::npos) {
        errors_.add(item, "expected the name of an environment variable");
      } else {
        check_slots(slots_of(text), item);
      }
    }
  }

  void check_claim(const FieldPath& path) {
    const GpuPut& put = profile_.put;
    if (put.claim.is_null()) {
      if (put.shared_claim) {
        errors_.add(path_.member("put").member("sharedClaim"), "found without claim");
      }
      return;
    }
    const Json* const devices = put.claim.find("devices");
    const Json* const requests =
        devices != nullptr && devices->is_object() ? devices->find("requests") : nullptr;
    if (requests == nullptr || !requests->is_array() || requests->as_array().empty()) {
      errors_.add(path, "has no devices.requests; expected the spec of a ResourceClaim");
    }
    check_slots(slots_in(put.claim), path);
  }

  // Fills in the slots with numbers that some pod may have; labels take any number alike.
  static std::string with_example_numbers(const std::string& text) {
    GpuSlotValues values;
    values.fraction = 0.5;
    values.mib = 1;
    return fill_slots(text, values);
  }

  // Whether all slots are known and will have a value; adds errors.
  bool check_slots(const std::set<std::string>& slots, const FieldPath& path) {
    for (const std::string& slot : slots) {
      if (std::ranges::find(kGpuSlots, slot) == kGpuSlots.end()) {
        errors_.add(path, "found the slot {" + slot +
                              "}, expected {count}, {fraction}, {percent}, {mib} or {units}");
        return false;
      }
      if (slot == "mib" && !profile_.memory && needs_card_memory()) {
        errors_.add(path,
                    "found {mib}, for which the profile must say the memory of one card; "
                    "expected memory beside name");
        return false;
      }
    }
    return true;
  }

  // Whether {mib} is computed from the memory of a card; otherwise the request or the slice has it.
  bool needs_card_memory() const {
    return profile_.offers.count || (profile_.offers.fraction && !is_one_slice(profile_));
  }

  // ---- Rules of single projects ----------------------------------------------------------------

  void check_rules_of_sharing() {
    if (profile_.sharing != GpuSharing::kKai) return;
    const bool shares = profile_.offers.fraction || profile_.offers.memory;
    const GpuPut& put = profile_.put;
    if (shares && put.limits.is_object() && put.limits.find(kNvidiaGpu) != nullptr) {
      errors_.add(path_.member("put").member("limits"),
                  "found nvidia.com/gpu beside a fraction, which KAI-Scheduler refuses; expected "
                  "annotations only, and a profile of its own for whole GPUs");
    }
    if (put.annotations.count("gpu-fraction") != 0 && put.annotations.count("gpu-memory") != 0) {
      errors_.add(path_.member("put").member("annotations"),
                  "found gpu-fraction and gpu-memory, of which KAI-Scheduler takes one; expected a "
                  "profile for each");
    }
  }

  const GpuProfile& profile_;
  const FieldPath& path_;
  FieldErrors& errors_;
};

}  // namespace

void check_gpu_profile(const GpuProfile& profile, const FieldPath& path, FieldErrors& errors) {
  Checker(profile, path, errors).check();
}

}  // namespace fettle::api
