#include "runtime/local/run/gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "base/machine/gpu_list.h"

namespace fettle::local {
namespace {

constexpr int kMaxGpus = 64;

bool is_cut(const machine::Gpu& gpu) { return gpu.mig.value_or(false); }

// The parts of the card that can be assigned to a process.
std::vector<std::string> uuids_of(const machine::Gpu& gpu) {
  if (!is_cut(gpu)) return {gpu.uuid};
  std::vector<std::string> parts;
  for (const machine::GpuInstance& instance : gpu.instances) parts.push_back(instance.uuid);
  return parts;
}

// Whether CUDA's numbers follow the driver's: cards of one kind always come in the order of their
// buses, different cards only if CUDA_DEVICE_ORDER says so. CUDA counts the parts of a card
// differently.
bool counts_as_driver(const GpuSources& sources) {
  const std::vector<machine::Gpu>& all = sources.driver.all;
  if (std::ranges::any_of(all, is_cut)) return false;
  return sources.by_pci || std::ranges::all_of(all, [&](const machine::Gpu& gpu) {
           return gpu.name == all.front().name;
         });
}

// The card at that place, in the order of buses.
std::optional<std::string> uuid_at(const GpuSources& sources, std::size_t place) {
  std::vector<machine::Gpu> all = sources.driver.all;
  std::ranges::stable_sort(all,
                           [](const auto& one, const auto& other) { return one.pci < other.pci; });
  if (!counts_as_driver(sources) || place >= all.size()) return std::nullopt;
  return all[place].uuid;
}

// The id of the GPU that CUDA_VISIBLE_DEVICES calls `name`: a number, or a UUID or its beginning.
std::string id_of(const std::string& name, const GpuSources& sources) {
  const bool is_number =
      std::ranges::all_of(name, [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (is_number && name.size() < 6) {  // a longer number is no place in a list of GPUs
    // If its card is unknown, Sessions that use the same number share the id.
    return uuid_at(sources, std::stoul(name)).value_or("cuda:" + name);
  }
  for (const machine::Gpu& gpu : sources.driver.all) {
    for (const std::string& uuid : uuids_of(gpu)) {
      if (uuid.rfind(name, 0) == 0) return uuid;
    }
  }
  return name;
}

std::vector<int> device_nodes() {
  std::vector<int> nodes;
  for (int n = 0; n < kMaxGpus; ++n) {
    if (::access(("/dev/nvidia" + std::to_string(n)).c_str(), F_OK) == 0) nodes.push_back(n);
  }
  return nodes;
}

}  // namespace

VisibleGpus name_gpus(const GpuSources& sources) {
  VisibleGpus visible;
  const auto add = [&](const std::string& id, const std::string& cuda) {
    const bool known =
        std::ranges::any_of(visible.names, [&](const GpuName& name) { return name.id == id; });
    // An empty id means that the driver could not name the card's UUID.
    if (!known && !id.empty()) visible.names.push_back({id, cuda});
  };
  // A trial inherits CUDA_DEVICE_ORDER, so these names mean the same GPUs there.
  if (sources.chosen) {
    for (const std::string& name : machine::split_gpus(*sources.chosen)) {
      add(id_of(name, sources), name);
    }
    return visible;
  }
  for (const machine::Gpu& gpu : sources.driver.all) {
    for (const std::string& uuid : uuids_of(gpu)) add(uuid, uuid);
  }
  if (!sources.driver.all.empty()) return visible;
  // No driver library: the device nodes are numbered in the order of PCI_BUS_ID.
  visible.by_pci = true;
  for (std::size_t place = 0; place < sources.nodes.size(); ++place) {
    add("nvidia" + std::to_string(sources.nodes[place]), std::to_string(place));
  }
  return visible;
}

VisibleGpus visible_gpus() {
  static const machine::Gpus kDriver = machine::find_gpus();
  GpuSources sources;
  if (const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES")) sources.chosen = chosen;
  const char* const order = std::getenv("CUDA_DEVICE_ORDER");
  sources.by_pci = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  sources.driver = kDriver;
  sources.nodes = device_nodes();
  return name_gpus(sources);
}

}  // namespace fettle::local
