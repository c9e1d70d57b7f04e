#include "cli/gpus/inventory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "api/fields/quantity.h"
#include "kube/objects/json_path.h"

namespace fettle::cli {
namespace {

constexpr kube::Resource kNodes{"", "v1", "nodes", "Node"};
constexpr kube::Resource kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass"};
constexpr kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice"};

constexpr double kMib = 1024.0 * 1024.0;
constexpr std::chrono::milliseconds kDiscoveryDeadline{10'000};

constexpr std::string_view kMigLabel = "nvidia.com/mig-";
constexpr std::string_view kMigMemory = ".memory";
constexpr std::string_view kShared = "-SHARED";
constexpr std::string_view kMigProduct = "-MIG-";
constexpr const char* kHamiAnnotation = "hami.io/node-nvidia-register";

struct ApiGroup {
  const char* group;
  const char* name;
};
constexpr std::array<ApiGroup, 3> kSchedulers{{{"scheduling.run.ai", "KAI-Scheduler"},
                                               {"scheduling.volcano.sh", "Volcano"},
                                               {"kueue.x-k8s.io", "Kueue"}}};

bool is_gpu_resource(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPrefixes{
      "nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "habana.ai/", "volcano.sh/vgpu"};
  return name == "aliyun.com/gpu-mem" ||
         std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return all ? std::optional(number) : std::nullopt;
}

std::int64_t amount_of(const Json& value) {
  if (value.is_integer()) return value.as_integer();
  if (!value.is_string()) return 0;
  const Result<double> amount = api::parse_quantity(value.as_string());
  return amount.ok() ? std::llround(*amount) : 0;
}

const Json& object_at(const Json& object, kube::JsonPath path) {
  static const Json kNone = Json::object();
  const Json* const found = kube::value_at(object, path);
  return found != nullptr && found->is_object() ? *found : kNone;
}

// ---- Nodes -------------------------------------------------------------------------------------

class NodeReader {
 public:
  NodeReader(const Json& node, std::vector<std::string>& notes)
      : labels_(object_at(node, {"metadata", "labels"})),
        annotations_(object_at(node, {"metadata", "annotations"})),
        allocatable_(object_at(node, {"status", "allocatable"})),
        notes_(notes) {
    node_.name = kube::text_at(node, {"metadata", "name"});
  }

  std::optional<GpuNode> read() {
    for (const auto& [resource, amount] : allocatable_.as_object()) {
      if (!is_gpu_resource(resource)) continue;
      const std::int64_t total = amount_of(amount);
      if (total > 0) node_.resources[resource].total = total;
    }
    if (node_.resources.empty()) return std::nullopt;
    read_labels();
    compare();
    return std::move(node_);
  }

 private:
  std::string label(std::string_view name) const {
    const Json* const found = labels_.find(name);
    return found != nullptr && found->is_string() ? found->as_string() : "";
  }

  // Returns a label that must be a number; 0 if it is absent.
  std::int64_t number(const std::string& name) {
    const std::string text = label(name);
    if (text.empty()) return 0;
    const auto value = whole_number(text);
    if (value && *value >= 0) return *value;
    note("its label " + name + " is \"" + text + "\", which is no number; it is left aside");
    return 0;
  }

  void note(const std::string& words) { notes_.push_back("node " + node_.name + ": " + words); }

  void read_labels() {
    node_.product = label("nvidia.com/gpu.product");
    node_.model = node_.product;
    if (node_.model.ends_with(kShared)) {
      node_.model.resize(node_.model.size() - kShared.size());
    }
    if (const auto at = node_.model.find(kMigProduct); at != std::string::npos) {
      node_.mig = node_.model.substr(at + kMigProduct.size());
      node_.model.resize(at);
    }
    if (node_.model.empty()) node_.model = label("amd.com/gpu.product-name");
    node_.mib = number("nvidia.com/gpu.memory");
    node_.replicas = std::max<std::int64_t>(number("nvidia.com/gpu.replicas"), 1);
    const std::string strategy = label("nvidia.com/gpu.sharing-strategy");
    if (strategy == "mps" || strategy == "time-slicing") node_.sharing = strategy;
    node_.cards = number("nvidia.com/gpu.count");
    node_.hami = annotations_.find(kHamiAnnotation) != nullptr;
    for (const auto& [name, value] : labels_.as_object()) {
      const std::string_view key = name;
      if (!key.starts_with(kMigLabel) || !key.ends_with(kMigMemory)) continue;
      const std::string profile(
          key.substr(kMigLabel.size(), key.size() - kMigLabel.size() - kMigMemory.size()));
      if (const std::int64_t mib = number(name); mib > 0) node_.mig_mib[profile] = mib;
    }
  }

  // Another program writes the labels than the capacity; they may lag behind or be set by hand.
  void compare() {
    const auto units = [this](const char* resource) {
      const auto found = node_.resources.find(resource);
      return found == node_.resources.end() ? 0 : found->second.total;
    };
    // Name of the device plugin's shares, if it is configured to give them another name.
    const std::int64_t shared = units("nvidia.com/gpu.shared");
    const std::int64_t total = shared > 0 ? shared : units("nvidia.com/gpu");
    // HAMi's capacity counts each card as several, whatever the labels say.
    if (!node_.hami && node_.cards > 0 && total > 0 && node_.cards * node_.replicas != total) {
      note("its labels say " + std::to_string(node_.cards) + " cards with " +
           std::to_string(node_.replicas) + " replicas each, its capacity says " +
           std::to_string(total) + "; the capacity is believed");
    }
    if (node_.replicas > 1 && node_.sharing.empty()) {
      note("its label nvidia.com/gpu.replicas is " + std::to_string(node_.replicas) +
           ", but nvidia.com/gpu.sharing-strategy names no way of sharing; no profile is proposed "
           "for its shares");
    }
    if (!node_.sharing.empty() && node_.replicas == 1) {
      note("its label nvidia.com/gpu.sharing-strategy is " + node_.sharing +
           ", but each card has one replica; it is taken to be unshared");
      node_.sharing.clear();
    }
  }

  const Json& labels_;
  const Json& annotations_;
  const Json& allocatable_;
  std::vector<std::string>& notes_;
  GpuNode node_;
};

// Requests of pods that have not ended, by node and resource.
using Usage = std::map<std::string, std::map<std::string, std::int64_t>>;

Usage usage_of(const std::vector<Json>& pods) {
  Usage usage;
  for (const Json& pod : pods) {
    const std::string node = kube::text_at(pod, {"spec", "nodeName"});
    const std::string phase = kube::text_at(pod, {"status", "phase"});
    if (node.empty() || phase == "Succeeded" || phase == "Failed") continue;
    for (const Json& container : kube::array_at(pod, {"spec", "containers"})) {
      // For devices, requests always equal limits.
      for (const auto& [name, amount] : object_at(container, {"resources", "limits"}).as_object()) {
        if (is_gpu_resource(name)) usage[node][name] += amount_of(amount);
      }
    }
  }
  return usage;
}

// ---- Devices -----------------------------------------------------------------------------------

// Returns the text of an attribute, {"string": "H100"}; "" if it is absent. Its name may follow a
// domain: "gpu.nvidia.com/profile".
std::string attribute(const Json& device, std::string_view name) {
  const Json& attributes = object_at(device, {"attributes"});
  for (const auto& [key, value] : attributes.as_object()) {
    const std::string_view full = key;
    const bool same = full == name || (full.ends_with(name) && full.size() > name.size() &&
                                       full[full.size() - name.size() - 1] == '/');
    if (same) return kube::text_at(value, {"string"});
  }
  return "";
}

GpuDevices read_device(const Json& device, const std::string& driver) {
  GpuDevices out;
  out.driver = driver;
  out.mig_profile = attribute(device, "profile");
  out.model = attribute(device, "productName");
  const std::string memory = kube::text_at(device, {"capacity", "memory", "value"});
  const Result<double> bytes = api::parse_quantity(memory.empty() ? "0" : memory);
  if (bytes.ok()) out.mib = std::llround(*bytes / kMib);
  out.by_memory = kube::boolean_at(device, {"allowMultipleAllocations"});
  out.partitioned = !kube::array_at(device, {"consumesCounters"}).empty();
  return out;
}

// ---- Rights ------------------------------------------------------------------------------------

// Returns the list. Without the right to read it, returns an empty list and adds a sentence to
// `missing` that ends with `hides`, the consequence; sets `forbidden` accordingly. A kind that the
// cluster does not have is no error.
Result<std::vector<Json>> list_if_allowed(kube::Client& client, const kube::Resource& resource,
                                          const std::string& hides, bool& forbidden,
                                          std::vector<std::string>& missing) {
  Result<std::vector<Json>> listed = client.list(resource, "");
  forbidden = !listed.ok() && listed.error().code == ErrorCode::kForbidden;
  if (listed.ok()) return listed;
  if (listed.error().code == ErrorCode::kNotFound) return std::vector<Json>();
  if (!forbidden) return listed.error();
  missing.push_back("you may not list " + std::string(resource.plural) + ", so " + hides);
  return std::vector<Json>();
}

bool has_group(kube::Client& client, const std::string& group) {
  kube::HttpRequest request;
  request.target = "/apis/" + group;
  const kube::HttpResult result = client.transport().call(request, kDiscoveryDeadline);
  const auto* const response = std::get_if<kube::HttpResponse>(&result);
  return response != nullptr && response->status == 200;
}

Status read_nodes(kube::Client& client, GpuInventory& inventory) {
  bool forbidden = false;
  FETTLE_ASSIGN(const std::vector<Json> nodes,
                list_if_allowed(client, kNodes,
                                "cards, memory and ways of sharing of device plugins are not shown",
                                forbidden, inventory.missing));
  for (const Json& node : nodes) {
    if (auto read = read_gpu_node(node, inventory.notes)) {
      inventory.nodes.push_back(std::move(*read));
    }
  }
  if (inventory.nodes.empty()) return success();
  FETTLE_ASSIGN(const std::vector<Json> pods,
                list_if_allowed(client, kube::kPods, "what is in use is not known", forbidden,
                                inventory.missing));
  if (forbidden) return success();
  const Usage usage = usage_of(pods);
  for (GpuNode& node : inventory.nodes) {
    const auto of_node = usage.find(node.name);
    for (auto& [name, resource] : node.resources) {
      resource.used = 0;
      if (of_node == usage.end()) continue;
      const auto found = of_node->second.find(name);
      if (found != of_node->second.end()) resource.used = found->second;
    }
  }
  return success();
}

Status read_claimable(kube::Client& client, GpuInventory& inventory) {
  bool forbidden = false;  // not read: a refused list is empty, which is enough
  FETTLE_ASSIGN(const std::vector<Json> classes,
                list_if_allowed(client, kDeviceClasses, "no claim can be proposed", forbidden,
                                inventory.missing));
  for (const Json& one : classes) {
    inventory.device_classes.push_back(kube::text_at(one, {"metadata", "name"}));
  }
  FETTLE_ASSIGN(const std::vector<Json> slices,
                list_if_allowed(client, kSlices, "devices that can be claimed are not shown",
                                forbidden, inventory.missing));
  inventory.devices = read_gpu_devices(slices);
  return success();
}

}  // namespace

std::optional<GpuNode> read_gpu_node(const Json& node, std::vector<std::string>& notes) {
  return NodeReader(node, notes).read();
}

std::vector<GpuDevices> read_gpu_devices(const std::vector<Json>& slices) {
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, bool, bool>;
  std::map<Key, GpuDevices> alike;
  std::map<Key, std::map<std::string, std::int64_t>> on_nodes;
  for (const Json& slice : slices) {
    const std::string driver = kube::text_at(slice, {"spec", "driver"});
    // "": devices within reach of several nodes, counted like the devices of one node.
    const std::string node = kube::text_at(slice, {"spec", "nodeName"});
    for (const Json& device : kube::array_at(slice, {"spec", "devices"})) {
      GpuDevices one = read_device(device, driver);
      const Key key{driver, one.mig_profile, one.model, one.mib, one.by_memory, one.partitioned};
      GpuDevices& known = alike.try_emplace(key, std::move(one)).first->second;
      ++known.count;
      known.most_on_a_node = std::max(known.most_on_a_node, ++on_nodes[key][node]);
    }
  }
  std::vector<GpuDevices> out;
  for (auto& [key, devices] : alike) {
    // Network cards and other devices are claimed, too. Drivers of GPUs have names like
    // gpu.nvidia.com.
    if (devices.driver.find("gpu") != std::string::npos) out.push_back(std::move(devices));
  }
  return out;
}

Result<GpuInventory> read_gpu_inventory(kube::Client& client) {
  GpuInventory inventory;
  FETTLE_TRY(read_nodes(client, inventory));
  FETTLE_TRY(read_claimable(client, inventory));
  for (const ApiGroup& scheduler : kSchedulers) {
    if (has_group(client, scheduler.group)) inventory.schedulers.emplace_back(scheduler.name);
  }
  std::ranges::sort(inventory.nodes, {}, &GpuNode::name);
  return inventory;
}

}  // namespace fettle::cli
