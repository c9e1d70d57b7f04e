// Machine: the resources of this machine, within the limits of this process's container.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/machine/cgroup.h"
#include "base/machine/cpu.h"
#include "base/machine/gpu.h"

namespace fettle::machine {

struct MemoryInfo {
  std::int64_t total = 0;      // bytes
  std::int64_t available = 0;  // without taking any from other processes
};

// Parses /proc/meminfo; 0 for missing values. Pure.
MemoryInfo parse_memory(std::string_view meminfo);

struct Disk {
  std::string directory;
  bool writable = false;  // by this process
  std::int64_t free = 0;  // bytes
  std::int64_t total = 0;
};

struct Machine {
  Cpu cpu;
  double cores = 1;  // usable by this process
  MemoryInfo memory;
  std::int64_t usable_memory = 0;  // bytes
  CgroupLimits limits;
  Disk disk;
  Gpus gpus;
};

// `directory`: its disk is inspected; if it is missing, that of the nearest existing parent.
Machine inspect_machine(const std::string& directory);

}  // namespace fettle::machine
