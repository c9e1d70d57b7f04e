// The NVIDIA GPUs of this machine that local trials can use, and their names.
//
// A GPU has two names. Its id, the driver's UUID, tells it from every other GPU of the machine, for
// all Studies, users and containers. The other name is the value of CUDA_VISIBLE_DEVICES with which
// CUDA takes this GPU in a process of ours. Numbers are a bad name: CUDA counts only the cards that
// a container was given, and counts the fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID. Usable
// from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/machine/gpu.h"

namespace fettle::local {

struct GpuName {
  std::string id;
  std::string cuda;
  bool operator==(const GpuName&) const = default;
};

struct VisibleGpus {
  std::vector<GpuName> names;
  bool by_pci =
      false;  // `cuda` is a place in the order of PCI_BUS_ID: a trial must get that order, too
};

// The sources of the names.
struct GpuSources {
  std::optional<std::string> chosen;  // CUDA_VISIBLE_DEVICES, if it is set
  bool by_pci = false;                // CUDA_DEVICE_ORDER is PCI_BUS_ID
  machine::Gpus driver;
  std::vector<int> nodes;  // the n of each /dev/nvidia<n>, ascending
};

// Returns the GPUs that CUDA_VISIBLE_DEVICES lists, if it is set, under the names it uses.
// Otherwise all GPUs that the driver reports, by UUID; a card that is cut into parts (MIG) counts
// as its parts. Without a driver library the device nodes, by their places. Pure.
VisibleGpus name_gpus(const GpuSources& sources);

// The GPUs of this process. The driver is asked once.
VisibleGpus visible_gpus();

}  // namespace fettle::local
