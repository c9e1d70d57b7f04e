// GpuInventory: the GPUs of a cluster as its objects tell of them, read with the rights of the
// user who asks (the operator has none to nodes).
//
// Reading is lenient: labels that contradict a node's capacity are told as notes, and the capacity
// is believed, because that is what the scheduler goes by. What may not be read is named in
// `missing`. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client.h"

namespace fettle::cli {

// One resource of one node, such as nvidia.com/gpu or nvidia.com/mig-1g.20gb.
struct GpuResource {
  std::int64_t total = 0;            // allocatable
  std::optional<std::int64_t> used;  // by pods that have not ended; absent: pods may not be read
};

struct GpuNode {
  std::string name;
  std::string model;       // without "-SHARED" and "-MIG-..."; "" = not known
  std::string product;     // the label nvidia.com/gpu.product as it is
  std::string mig;         // "1g.20gb": what it gives out as nvidia.com/gpu; "" = whole cards
  std::int64_t mib = 0;    // memory of one card; 0 = not known
  std::int64_t cards = 0;  // 0 = not known
  std::int64_t replicas = 1;
  std::string sharing;                          // "mps", "time-slicing" or ""
  bool hami = false;                            // HAMi's device plugin has registered its cards
  std::map<std::string, std::int64_t> mig_mib;  // by "1g.20gb": its real memory
  std::map<std::string, GpuResource> resources;
};

// Devices of ResourceSlices that are alike.
struct GpuDevices {
  std::string driver;
  std::string mig_profile;   // "1g.20gb"; "" = whole cards
  std::string model;         // "" = not known
  std::int64_t mib = 0;      // 0 = not known
  bool by_memory = false;    // several claims share one, each with a part of its memory
  bool partitioned = false;  // made on demand out of counters that cards share
  std::int64_t count = 0;
  std::int64_t most_on_a_node = 0;
};

struct GpuInventory {
  std::vector<GpuNode> nodes;               // those with GPUs, by name
  std::vector<std::string> device_classes;  // names
  std::vector<GpuDevices> devices;
  std::vector<std::string> schedulers;  // "KAI-Scheduler", "Volcano", "Kueue": their APIs are there
  std::vector<std::string> notes;       // what contradicts itself
  std::vector<std::string> missing;     // what may not be read, and what that hides
};

// kUnavailable and others where the cluster cannot be reached at all.
Result<GpuInventory> read_gpu_inventory(kube::Client& client);

// A node without GPUs gives nothing. `notes` gets what contradicts itself.
std::optional<GpuNode> read_gpu_node(const Json& node, std::vector<std::string>& notes);
std::vector<GpuDevices> read_gpu_devices(const std::vector<Json>& slices);

}  // namespace fettle::cli
