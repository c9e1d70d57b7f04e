#include "machine/machine.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/directory.h"
#include "base/file.h"
#include "machine/usable.h"

namespace fettle::machine {
namespace {

constexpr int kMostMeasuringThreads = 64;

// The first line of a small file; "" without it.
std::string line_of(const std::string& path) {
  const auto text = read_file(path);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

std::string text_of(const std::string& path) {
  const auto text = read_file(path);
  return text.ok() ? *text : "";
}

// cpuinfo has the current clock; the clock's driver has the highest one, in kHz.
void take_highest_clock(Cpu& cpu) {
  const std::string highest = line_of("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  cpu.hertz = std::max(cpu.hertz, 1e3 * std::strtod(highest.c_str(), nullptr));
}

void take_cache(Cpu& cpu) {
  for (const char* level : {"index3", "index2"}) {
    const std::string path = "/sys/devices/system/cpu/cpu0/cache/" + std::string(level) + "/size";
    cpu.cache = parse_cache_size(line_of(path));
    if (cpu.cache > 0) return;
  }
}

Disk inspect_disk(const std::string& directory) {
  std::error_code code;
  std::filesystem::path path = std::filesystem::absolute(directory, code);
  // Finds the nearest existing parent; "/" has no relative path.
  while (!std::filesystem::is_directory(path, code) && path.has_relative_path()) {
    path = path.parent_path();
  }
  Disk disk;
  disk.directory = path.string();
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) == 0) {
    disk.free = static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
    disk.total = static_cast<std::int64_t>(space.f_blocks * space.f_frsize);
  }
  const auto rate = measure_disk(disk.directory);
  if (rate.ok()) disk.rate = *rate;
  if (!rate.ok()) disk.why_not = rate.error().message;
  return disk;
}

// NVML writes "00000000:18:00.0", the kernel "0000:18:00.0".
std::optional<double> find_pci_rate(const Gpus& gpus) {
  if (gpus.all.empty() || gpus.all[0].pci.size() < 12) return std::nullopt;
  std::string address = gpus.all[0].pci.substr(gpus.all[0].pci.size() - 12);
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string device = "/sys/bus/pci/devices/" + address;
  return parse_pci_link(line_of(device + "/max_link_speed"), line_of(device + "/max_link_width"));
}

}  // namespace

std::vector<Link> find_links(const std::string& root) {
  std::vector<Link> links;
  for (const auto& entry : entries_of(root + "/sys/class/net")) {
    const std::string name = entry.path().filename().string();
    if (name == "lo") continue;
    links.push_back({name, line_of(entry.path().string() + "/operstate"),
                     parse_link_speed(line_of(entry.path().string() + "/speed"))});
  }
  std::ranges::sort(links, {}, &Link::name);
  return links;
}

Machine inspect_machine(const std::string& directory) {
  Machine machine;
  machine.cpu = parse_cpu(text_of("/proc/cpuinfo"));
  take_highest_clock(machine.cpu);
  take_cache(machine.cpu);
  machine.cores = usable_cores();
  machine.memory = parse_memory(text_of("/proc/meminfo"));
  machine.usable_memory = usable_memory();
  machine.limits = cgroup_limits();
  const int threads = static_cast<int>(std::ceil(machine.cores));
  machine.memory_rate = measure_memory(std::clamp(threads, 1, kMostMeasuringThreads));
  machine.disk = inspect_disk(directory);
  machine.links = find_links();
  const auto loopback = measure_loopback();
  if (loopback.ok()) machine.loopback = *loopback;
  machine.gpus = find_gpus();
  machine.pci = find_pci_rate(machine.gpus);
  return machine;
}

}  // namespace fettle::machine
