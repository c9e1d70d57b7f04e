// Memory, caches and links, read from the text of the kernel's files.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fettle::machine {

struct MemoryInfo {
  std::int64_t total = 0;      // bytes
  std::int64_t available = 0;  // without taking any from other processes
};

// Parses /proc/meminfo; 0 for missing values.
MemoryInfo parse_memory(std::string_view meminfo);

// Parses /sys/devices/system/cpu/cpu0/cache/index3/size, "32768K": bytes; 0: another text.
double parse_cache_size(std::string_view size);

// Parses /sys/class/net/<name>/speed: bytes a second. Absent: virtual or down ("-1", or nothing).
std::optional<double> parse_link_speed(std::string_view speed);

// Parses a PCI link, "16.0 GT/s PCIe", and its lanes: bytes per second each way. Absent: another
// text.
std::optional<double> parse_pci_link(std::string_view speed, std::string_view width);

}  // namespace fettle::machine
