#include "cli/gpus/proposal.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <compare>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "api/fields/label_syntax.h"

namespace fettle::cli {
namespace {

using api::GpuEnforcement;
using api::GpuProfile;
using api::GpuSharing;

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kHundredth = 0.01;
constexpr std::int64_t kMostCount = 64;
constexpr std::string_view kMigResource = "nvidia.com/mig-";
constexpr std::string_view kKai = "KAI-Scheduler";

double bytes(std::int64_t mib) { return static_cast<double>(mib) * kMib; }

// Returns "NVIDIA-H100-80GB-HBM3" or "mig-1g.20gb" as a DNS label.
std::string dns_name(const std::string& text) {
  constexpr std::size_t kLongest = 63;
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = std::isalnum(byte) != 0;
    if (fits) name += static_cast<char>(std::tolower(byte));
    if (!fits && !name.empty() && name.back() != '-') name += '-';
  }
  if (name.size() > kLongest) name.resize(kLongest);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

// Nodes with the same card and the same way of sharing.
struct Group {
  std::int64_t most = 0;                                        // units on one node
  std::int64_t cards = 0;                                       // on one node; 0 = not known
  std::int64_t mib = std::numeric_limits<std::int64_t>::max();  // of the smallest card
  std::int64_t mig_mib = std::numeric_limits<std::int64_t>::max();
  std::int64_t replicas = 1;
  std::string product;
  bool memory_known = true;
};
struct GroupKey {
  std::string model;
  std::string resource;
  std::string sharing;
  std::int64_t replicas = 1;
  std::string mig;  // "1g.20gb": slices named like whole cards; "" = none
  auto operator<=>(const GroupKey&) const = default;
};

// Rounds to the parts of a card that people ask for: 1/8, 1/4, 1/2, 1. A MIG profile is near one of
// them.
double round_part(double part) {
  double nearest = 1;
  for (const double candidate : {0.125, 0.25, 0.5}) {
    if (std::abs(std::log(candidate / part)) < std::abs(std::log(nearest / part))) {
      nearest = candidate;
    }
  }
  return nearest;
}

// Returns the GB in "1g.20gb" or "1g.20gb.me"; 0 if it has none.
std::int64_t nominal_gb(std::string_view profile) {
  const std::size_t dot = profile.find("g.");
  if (dot == std::string_view::npos) return 0;
  std::int64_t gb = 0;
  std::from_chars(profile.data() + dot + 2, profile.data() + profile.size(), gb);
  return gb;
}

// Returns the number of sevenths in "1g.20gb"; 0 if it has none.
std::int64_t sevenths(std::string_view profile) {
  std::int64_t count = 0;
  std::from_chars(profile.data(), profile.data() + profile.size(), count);
  return count;
}

class Proposal {
 public:
  explicit Proposal(const GpuInventory& inventory) : inventory_(inventory) {}

  std::vector<GpuProfile> make() {
    for (const GpuNode& node : inventory_.nodes) gather(node);
    for (const auto& [key, group] : groups_) propose_group(key, group);
    for (const GpuDevices& devices : inventory_.devices) propose_devices(devices);
    if (has_kai()) propose_kai();
    std::ranges::stable_sort(profiles_, is_before);
    return std::move(profiles_);
  }

 private:
  // Strictest first; then the smallest slice, since the first of equals is chosen.
  static bool is_before(const GpuProfile& a, const GpuProfile& b) {
    if (a.enforces != b.enforces) return a.enforces > b.enforces;
    return size_of(a) < size_of(b);
  }

  static double size_of(const GpuProfile& profile) {
    return profile.offers.memory ? profile.offers.memory->step : 0;
  }

  bool has_kai() const {
    const auto& names = inventory_.schedulers;
    return std::ranges::find(names, kKai) != names.end();
  }

  void gather(const GpuNode& node) {
    for (const auto& [resource, units] : node.resources) {
      const bool is_shared = resource == "nvidia.com/gpu.shared" ||
                             (resource == "nvidia.com/gpu" && node.replicas > 1);
      // Shares without a label that tells how they are shared.
      if (is_shared && node.sharing.empty() && !node.hami) continue;
      std::string sharing = is_shared ? node.sharing : "";
      // HAMi shares every card, with or without labels; its profiles request parts, not replicas.
      if (node.hami && resource == "nvidia.com/gpu") sharing = "hami";
      const std::int64_t replicas = is_shared && !node.hami ? node.replicas : 1;
      const std::string slices = resource.starts_with("nvidia.com/gpu") ? node.mig : "";
      Group& group = groups_[{node.model, resource, sharing, replicas, slices}];
      group.most = std::max(group.most, units.total);
      group.cards = std::max(group.cards, node.cards);
      group.product = node.product;
      group.replicas = replicas;
      if (node.mib == 0) group.memory_known = false;
      if (node.mib > 0) group.mib = std::min(group.mib, node.mib);
      if (!resource.starts_with(kMigResource)) continue;
      const auto mig = node.mig_mib.find(resource.substr(kMigResource.size()));
      if (mig != node.mig_mib.end()) group.mig_mib = std::min(group.mig_mib, mig->second);
    }
  }

  // Returns a profile with the name, models and memory that all profiles of the group share.
  GpuProfile start(const std::string& kind, const std::string& model, const Group& group) const {
    GpuProfile profile;
    profile.name = dns_name(kind + (model.empty() ? "" : "-" + model));
    // Models are compared word by word: "NVIDIA B200" may have the form of a label.
    std::string label = model;
    std::ranges::replace(label, ' ', '-');
    if (!label.empty() && api::is_label_value(label)) profile.models = {label};
    if (group.memory_known) profile.memory = bytes(group.mib);
    return profile;
  }

  // Cards of another kind may have the same resource, but less memory.
  static void keep_to_product(const Group& group, GpuProfile& profile) {
    if (group.product.empty()) return;
    profile.put.node_selector["nvidia.com/gpu.product"] = group.product;
  }

  void propose_group(const GroupKey& key, const Group& group) {
    if (key.resource.starts_with(kMigResource)) return propose_mig(key, group);
    if (key.sharing == "hami") return propose_hami(key, group);
    if (!key.sharing.empty()) return propose_replicas(key, group);
    if (!key.mig.empty()) return propose_single_mig(key, group);
    if (key.resource == "volcano.sh/vgpu-number") return propose_volcano(key, group);
    if (key.resource == "aliyun.com/gpu-mem") return propose_aliyun(key, group);
    const bool whole =
        key.resource == "nvidia.com/gpu" || key.resource.starts_with("amd.com/gpu") ||
        key.resource.starts_with("gpu.intel.com/") || key.resource.starts_with("habana.ai/");
    if (whole) propose_whole(key, group);
  }

  void propose_whole(const GroupKey& key, const Group& group) {
    GpuProfile profile = start("whole", key.model, group);
    profile.sharing = GpuSharing::kWhole;
    profile.offers.count = std::min(group.most, kMostCount);
    profile.enforces = GpuEnforcement::kHardware;
    profile.put.limits = Json::object({{key.resource, "{count}"}});
    if (key.resource == "nvidia.com/gpu") keep_to_product(group, profile);
    add(std::move(profile));
  }

  void propose_mig(const GroupKey& key, const Group& group) {
    const std::string mig = key.resource.substr(kMigResource.size());
    const std::int64_t gb = nominal_gb(mig);
    if (gb == 0 || !group.memory_known) return;
    constexpr std::int64_t kMibOfGb = 1024;
    const bool known = group.mig_mib != std::numeric_limits<std::int64_t>::max();
    GpuProfile profile = start("mig-" + mig, key.model, group);
    profile.sharing = GpuSharing::kMig;
    const double part =
        round_part(static_cast<double>(gb * kMibOfGb) / static_cast<double>(group.mib));
    profile.offers.fraction = {part, part};
    // It has about 5 % less memory than its name says (jax#15843).
    constexpr double kReal = 0.95;
    const double real = known ? bytes(group.mig_mib)
                              : std::floor(static_cast<double>(gb * kMibOfGb) * kReal) * kMib;
    // Step and max: one size. A label may promise more than the card has, but no profile may.
    profile.offers.memory = {std::min(real, *profile.memory), std::min(real, *profile.memory)};
    profile.enforces = GpuEnforcement::kHardware;
    profile.put.limits = Json::object({{key.resource, 1}});
    keep_to_product(group, profile);
    add(std::move(profile));
  }

  // Nodes state the memory of a slice, and other nodes of the model may state that of a card.
  void propose_single_mig(const GroupKey& key, const Group& group) {
    if (!group.memory_known || sevenths(key.mig) == 0) return;
    GpuProfile profile = start("mig-" + key.mig, key.model, group);
    profile.sharing = GpuSharing::kMig;
    profile.memory.reset();  // in start(), a slice counts as a card
    double part = static_cast<double>(sevenths(key.mig)) / 7;
    const auto whole = groups_.find({key.model, key.resource, "", 1, ""});
    if (whole != groups_.end() && whole->second.memory_known && whole->second.mib >= group.mib) {
      profile.memory = bytes(whole->second.mib);
      part = static_cast<double>(group.mib) / static_cast<double>(whole->second.mib);
    }
    profile.offers.fraction = {round_part(part), round_part(part)};
    profile.offers.memory = {bytes(group.mib), bytes(group.mib)};
    profile.enforces = GpuEnforcement::kHardware;
    profile.put.limits = Json::object({{key.resource, 1}});
    keep_to_product(group, profile);
    add(std::move(profile));
  }

  // MPS and time-slicing: one unit of the resource is one of N replicas of a card.
  void propose_replicas(const GroupKey& key, const Group& group) {
    const bool mps = key.sharing == "mps";
    GpuProfile profile = start(key.sharing, key.model, group);
    profile.sharing = mps ? GpuSharing::kMps : GpuSharing::kTimeSlicing;
    const double part = 1 / static_cast<double>(group.replicas);
    profile.offers.fraction = {part, part};
    profile.enforces = mps ? GpuEnforcement::kMemory : GpuEnforcement::kNothing;
    profile.put.limits = Json::object({{key.resource, 1}});
    // Without its own name, the resource is named like whole cards elsewhere.
    if (key.resource == "nvidia.com/gpu") {
      profile.put.node_selector["nvidia.com/gpu.sharing-strategy"] = key.sharing;
    }
    keep_to_product(group, profile);
    add(std::move(profile));
  }

  void propose_hami(const GroupKey& key, const Group& group) {
    GpuProfile profile = start("hami", key.model, group);
    profile.sharing = GpuSharing::kHami;
    // Each card counts as several in the capacity, and a pod gets the number of cards that it
    // requests. Use 1 if their number is not known (0).
    profile.offers.count = std::clamp<std::int64_t>(group.cards, 1, kMostCount);
    profile.offers.fraction = {.step = kHundredth, .max = {}};  // in whole percent
    profile.enforces = GpuEnforcement::kMemory;  // the cores, too; no value means both
    keep_to_product(group, profile);
    profile.put.limits = Json::object({{"nvidia.com/gpu", "{count}"},
                                       {"nvidia.com/gpumem-percentage", "{percent}"},
                                       {"nvidia.com/gpucores", "{percent}"}});
    add(std::move(profile));
    if (!group.memory_known) return;
    GpuProfile memory = start("hami-memory", key.model, group);
    memory.sharing = GpuSharing::kHami;
    memory.offers.memory = {kMib, {}};
    memory.enforces = GpuEnforcement::kMemory;
    memory.put.limits = Json::object({{"nvidia.com/gpu", 1}, {"nvidia.com/gpumem", "{mib}"}});
    keep_to_product(group, memory);
    add(std::move(memory));
  }

  void propose_volcano(const GroupKey& key, const Group& group) {
    GpuProfile profile = start("volcano", key.model, group);
    profile.sharing = GpuSharing::kVolcano;
    // Each card counts as several in the capacity, as with HAMi.
    profile.offers.count = std::clamp<std::int64_t>(group.cards, 1, kMostCount);
    profile.offers.fraction = {.step = kHundredth, .max = {}};  // in whole percent
    profile.enforces = GpuEnforcement::kMemory;  // the cores, too; no value means both
    profile.put.scheduler_name = "volcano";
    profile.put.annotations["volcano.sh/vgpu-mode"] = "hami-core";
    profile.put.limits = Json::object({{"volcano.sh/vgpu-number", "{count}"},
                                       {"volcano.sh/vgpu-cores", "{percent}"},
                                       {"volcano.sh/vgpu-memory-percentage", "{percent}"}});
    add(std::move(profile));
  }

  void propose_aliyun(const GroupKey& key, const Group& group) {
    if (!group.memory_known) return;
    constexpr double kGib = 1024 * kMib;
    GpuProfile profile = start("aliyun", key.model, group);
    profile.sharing = GpuSharing::kOther;
    profile.offers.memory = {kGib, {}};
    profile.enforces = GpuEnforcement::kNothing;
    profile.put.limits = Json::object({{"aliyun.com/gpu-mem", "{units}"}});
    add(std::move(profile));
  }

  // Fractions that KAI-Scheduler manages by annotations. Its mode decides on enforcement and is not
  // in its API, so the profiles claim no enforcement. Proposed even if no node has whole NVIDIA
  // GPUs now; the memory of a card is not known then.
  void propose_kai() {
    Group all;
    bool any = false;
    for (const auto& [key, group] : groups_) {
      if (key.resource != "nvidia.com/gpu" || !key.sharing.empty()) continue;
      any = true;
      if (!group.memory_known) all.memory_known = false;
      all.mib = std::min(all.mib, group.mib);
    }
    if (!any) all.memory_known = false;
    GpuProfile profile = start("kai", "", all);
    profile.sharing = GpuSharing::kKai;
    profile.offers.fraction = {kHundredth, {}};
    profile.put.scheduler_name = "kai-scheduler";
    profile.put.labels["kai.scheduler/queue"] = "default-queue";
    profile.put.annotations["gpu-fraction"] = "{fraction}";
    add(profile);
    if (!all.memory_known) return;
    profile.name = "kai-memory";
    profile.offers = {};
    profile.offers.memory = {kMib, {}};
    profile.put.annotations = {{"gpu-memory", "{mib}"}};
    add(std::move(profile));
  }

  // ---- Claims ----------------------------------------------------------------------------------

  // Returns the class for the devices: that of MIG, else the one named like the driver.
  std::string class_for(const GpuDevices& devices) const {
    const auto& names = inventory_.device_classes;
    const auto has = [&](const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    if (!devices.mig_profile.empty() && has("mig.nvidia.com")) return "mig.nvidia.com";
    return has(devices.driver) ? devices.driver : "";
  }

  // Returns the spec of a ResourceClaim with one request: devices of that class, with the same card
  // and MIG profile. `wanted`: further members of the request.
  static Json claim(const GpuDevices& devices, const std::string& device_class,
                    std::initializer_list<Json::Member> wanted) {
    Json exactly = Json::object({{"deviceClassName", device_class}});
    for (const auto& [key, value] : wanted) exactly.set(key, value);
    Json selectors = Json::array();
    for (const auto& [name, value] :
         {std::pair("profile", &devices.mig_profile), std::pair("productName", &devices.model)}) {
      if (value->empty() || value->find_first_of("'\\") != std::string::npos) continue;
      // A device without the attribute is another device, and no error.
      const std::string expression = "device.attributes['" + devices.driver + "'].?" + name +
                                     ".orValue('') == '" + *value + "'";
      selectors.push_back(Json::object({{"cel", Json::object({{"expression", expression}})}}));
    }
    if (!selectors.as_array().empty()) exactly.set("selectors", std::move(selectors));
    const Json request = Json::object({{"name", "gpu"}, {"exactly", std::move(exactly)}});
    return Json::object({{"devices", Json::object({{"requests", Json::Array{request}}})}});
  }

  void propose_devices(const GpuDevices& devices) {
    const std::string device_class = class_for(devices);
    if (device_class.empty()) return;  // there is no class for a claim to name
    Group group;
    group.memory_known = devices.mib > 0;  // 0 = not known
    if (group.memory_known) group.mib = devices.mib;
    if (!devices.mig_profile.empty()) return propose_claimed_mig(devices, device_class);
    if (devices.by_memory) {
      if (!group.memory_known) return;  // offers.memory needs the memory of a card
      GpuProfile profile = start("dra-memory", devices.model, group);
      profile.sharing = GpuSharing::kDra;
      profile.offers.memory = {kMib, {}};
      // Enforces nothing: a claim reserves memory, and the slices do not tell whether it is a
      // limit.
      profile.put.claim = claim(
          devices, device_class,
          {{"capacity", Json::object({{"requests", Json::object({{"memory", "{mib}Mi"}})}})}});
      return add(std::move(profile));
    }
    GpuProfile profile = start("dra", devices.model, group);
    profile.sharing = GpuSharing::kDra;
    profile.offers.count = std::min(devices.most_on_a_node, kMostCount);
    profile.enforces = GpuEnforcement::kHardware;
    profile.put.claim =
        claim(devices, device_class, {{"allocationMode", "ExactCount"}, {"count", "{count}"}});
    add(std::move(profile));
  }

  void propose_claimed_mig(const GpuDevices& devices, const std::string& device_class) {
    // The card's memory is that of the driver's whole devices, of the same model if one is named.
    // Without such a device the part is not known, and nothing is proposed.
    std::int64_t card = 0;
    for (const GpuDevices& other : inventory_.devices) {
      const bool is_card = other.driver == devices.driver && other.mig_profile.empty();
      const bool is_model = devices.model.empty() || other.model == devices.model;
      if (is_card && is_model) card = std::max(card, other.mib);
    }
    if (devices.mib == 0 || card < devices.mib) return;
    Group group;
    group.mib = card;
    GpuProfile profile = start("dra-mig-" + devices.mig_profile, devices.model, group);
    profile.sharing = GpuSharing::kDra;
    const double part = round_part(static_cast<double>(devices.mib) / static_cast<double>(card));
    profile.offers.fraction = {part, part};
    profile.offers.memory = {bytes(devices.mib), bytes(devices.mib)};
    profile.enforces = GpuEnforcement::kHardware;
    profile.put.claim = claim(devices, device_class, {});
    add(std::move(profile));
  }

  // Names are unique: names equal except for case or punctuation get a number.
  void add(GpuProfile profile) {
    const std::string name = profile.name;
    for (int number = 2; !names_.insert(profile.name).second; ++number) {
      // With "-99" appended it still is a DNS label: 63 characters at most.
      profile.name = name.substr(0, 60) + "-" + std::to_string(number);
    }
    profiles_.push_back(std::move(profile));
  }

  const GpuInventory& inventory_;
  std::map<GroupKey, Group> groups_;
  std::vector<GpuProfile> profiles_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<GpuProfile> propose_profiles(const GpuInventory& inventory) {
  return Proposal(inventory).make();
}

}  // namespace fettle::cli
