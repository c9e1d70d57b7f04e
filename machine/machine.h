// Machine: the resources of this machine, within the limits of this process's container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/cgroup.h"
#include "machine/cpu.h"
#include "machine/gpu.h"
#include "machine/kernel_texts.h"
#include "machine/measure.h"

namespace fettle::machine {

struct Disk {
  std::string directory;  // where the rate was measured
  std::int64_t free = 0;  // bytes
  std::int64_t total = 0;
  std::optional<DiskRate> rate;  // absent: why_not has the reason
  std::string why_not;
};

struct Link {
  std::string name;             // "eth0"
  std::string state;            // "up"
  std::optional<double> speed;  // bytes a second, as reported by the driver
};

struct Machine {
  Cpu cpu;
  double cores = 1;  // usable by this process
  MemoryInfo memory;
  std::int64_t usable_memory = 0;  // bytes
  CgroupLimits limits;
  double memory_rate = 0;  // bytes a second
  Disk disk;
  std::vector<Link> links;  // without the loopback
  double loopback = 0;      // bytes a second; 0: no loopback
  Gpus gpus;
  std::optional<double> pci;  // bytes a second to the first GPU
};

// Reads and measures; takes about a second. `directory`: its disk is measured; if it is missing,
// that of the nearest existing parent.
Machine inspect_machine(const std::string& directory);

// The links of the machine. `root` replaces "/" in tests.
std::vector<Link> find_links(const std::string& root = "");

}  // namespace fettle::machine
