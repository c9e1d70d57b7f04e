// GpuInventory: the GPUs of a cluster according to its objects, read with the rights of the user
// who asks (the operator has no right to read nodes).
//
// Reading is lenient: labels that contradict a node's capacity become notes, and the capacity wins,
// because the scheduler uses it. `missing` names everything that may not be read. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client/client.h"

namespace fettle::cli {

// One resource of one node, such as nvidia.com/gpu or nvidia.com/mig-1g.20gb.
struct GpuResource {
  std::int64_t total = 0;            // allocatable
  std::optional<std::int64_t> used;  // by pods that have not ended; absent: pods may not be read
};

struct GpuNode {
  std::string name;
  std::string model;       // without "-SHARED" and "-MIG-..."; "" = not known
  std::string product;     // the label nvidia.com/gpu.product, unchanged
  std::string mig;         // "1g.20gb": its slices named nvidia.com/gpu; "" = whole cards
  std::int64_t mib = 0;    // memory of one card; 0 = not known
  std::int64_t cards = 0;  // 0 = not known
  std::int64_t replicas = 1;
  std::string sharing;                          // "mps", "time-slicing" or ""
  bool hami = false;                            // HAMi's device plugin has registered its cards
  std::map<std::string, std::int64_t> mig_mib;  // by "1g.20gb": its real memory
  std::map<std::string, GpuResource> resources;
};

// Equal devices of ResourceSlices.
struct GpuDevices {
  std::string driver;
  std::string mig_profile;   // "1g.20gb"; "" = whole cards
  std::string model;         // "" = not known
  std::int64_t mib = 0;      // 0 = not known
  bool by_memory = false;    // several claims share a device, each with a part of its memory
  bool partitioned = false;  // made on demand from counters that cards share
  std::int64_t count = 0;
  std::int64_t most_on_a_node = 0;
};

struct GpuInventory {
  std::vector<GpuNode> nodes;               // nodes with GPUs, by name
  std::vector<std::string> device_classes;  // names
  std::vector<GpuDevices> devices;
  std::vector<std::string> schedulers;  // "KAI-Scheduler", "Volcano", "Kueue": their APIs exist
  std::vector<std::string> notes;       // contradictions
  std::vector<std::string> missing;     // objects that may not be read, and the consequences
};

// kUnavailable and others if the cluster cannot be reached at all.
Result<GpuInventory> read_gpu_inventory(kube::Client& client);

// Returns nothing for a node without GPUs. Adds contradictions to `notes`.
std::optional<GpuNode> read_gpu_node(const Json& node, std::vector<std::string>& notes);
std::vector<GpuDevices> read_gpu_devices(const std::vector<Json>& slices);

}  // namespace fettle::cli
