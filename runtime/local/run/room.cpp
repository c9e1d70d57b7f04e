#include "runtime/local/run/room.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <utility>

#include "base/machine/units.h"

namespace fettle::local {
namespace {

constexpr double kRounding = 1e-6;  // of sums of cores
constexpr std::size_t kMostHolders = 4;

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string count(double value, const std::string& noun) {
  return number(value) + " " + noun + (value == 1 ? "" : "s");
}

std::string bytes(std::int64_t value) { return machine::bytes_text(static_cast<double>(value)); }

// The share of the claim's processors that are also ours.
double shared_part(const Claim& claim, const Room& room) {
  if (claim.cpus.empty() || room.cpus.empty()) return 1;
  const auto common = std::ranges::count_if(claim.cpus, [&](std::int64_t cpu) {
    return std::ranges::find(room.cpus, cpu) != room.cpus.end();
  });
  return static_cast<double>(common) / static_cast<double>(claim.cpus.size());
}

// The resources that no claim has taken.
class FreeResources {
 public:
  explicit FreeResources(const Room& room)
      : room_(room), gpus_(room.gpus), cores_(room.cores), memory_(room.memory) {}

  void take(const Claim& claim) {
    std::erase_if(gpus_, [&](const GpuName& gpu) { return contains(claim.gpus, gpu.id); });
    take_cores(claim);
    memory_ -= claim.need.memory;
  }

  // Reserves for a waiting run the resources that it lacks, and leaves the rest of its need to
  // others meanwhile. If it lacks nothing, reserves all that the run will take.
  void reserve(const Claim& claim) {
    const bool fits = has_gpus(claim) && has_cores(claim) && has_memory(claim);
    if (fits || !has_gpus(claim)) {
      std::int64_t left = claim.need.gpus;
      std::erase_if(gpus_, [&](const GpuName& gpu) {
        const bool gone = left > 0 && contains(claim.gpus, gpu.id);
        left -= gone ? 1 : 0;
        return gone;
      });
    }
    if (fits || !has_cores(claim)) take_cores(claim);
    if (fits || !has_memory(claim)) memory_ -= claim.need.memory;
  }

  bool has_gpus(const Claim& claim) const {
    return std::ranges::count_if(gpus_, [&](const GpuName& gpu) {
             return contains(claim.gpus, gpu.id);
           }) >= claim.need.gpus;
  }
  bool has_cores(const Claim& claim) const {
    return claim.need.cores * shared_part(claim, room_) <= cores_ + kRounding;
  }
  bool has_memory(const Claim& claim) const {
    return room_.memory <= 0 || claim.need.memory <= std::max<std::int64_t>(memory_, 0);
  }

  const std::vector<GpuName>& gpus() const { return gpus_; }
  double cores() const { return std::max(cores_, 0.0); }
  std::int64_t memory() const { return std::max<std::int64_t>(memory_, 0); }

 private:
  void take_cores(const Claim& claim) { cores_ -= claim.need.cores * shared_part(claim, room_); }

  const Room& room_;
  std::vector<GpuName> gpus_;
  double cores_;
  std::int64_t memory_;
};

bool waits_longer(const Claim& one, const Claim& other) {
  return one.since_us != other.since_us ? one.since_us < other.since_us : one.name < other.name;
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

Grant refuse(const std::string& need, const std::string& free, const std::string& all,
             const std::string& held_by) {
  return {{}, {"it needs " + need, free + " of " + all + " are free" + in_brackets(held_by)}};
}

}  // namespace

Need clamp(const Need& need, const Room& room) {
  Need clamped = need;
  clamped.cores = std::min(need.cores, room.cores);
  if (room.memory > 0) clamped.memory = std::min(need.memory, room.memory);
  return clamped;
}

Grant grant(const Room& room, const std::vector<Claim>& claims, const Claim& wanted) {
  FreeResources free(room);
  std::vector<Claim> earlier;  // waiting, too
  for (const Claim& claim : claims) {
    if (claim.granted) free.take(claim);
    if (!claim.granted && waits_longer(claim, wanted)) earlier.push_back(claim);
  }
  std::ranges::sort(earlier, waits_longer);
  for (const Claim& claim : earlier) free.reserve(claim);
  if (!free.has_gpus(wanted)) {
    return refuse(count(static_cast<double>(wanted.need.gpus), "GPU"),
                  number(static_cast<double>(free.gpus().size())),
                  number(static_cast<double>(room.gpus.size())),
                  holders(claims, Resource::kGpus, wanted.user));
  }
  if (!free.has_cores(wanted)) {
    return refuse(count(wanted.need.cores, "core"), number(free.cores()), number(room.cores),
                  holders(claims, Resource::kCores, wanted.user));
  }
  if (!free.has_memory(wanted)) {
    return refuse(bytes(wanted.need.memory) + " of memory", bytes(free.memory()),
                  bytes(room.memory), holders(claims, Resource::kMemory, wanted.user));
  }
  Grant given;
  for (const GpuName& gpu : free.gpus()) {
    const bool wants_more = std::ssize(given.gpus) < wanted.need.gpus;
    if (wants_more && contains(wanted.gpus, gpu.id)) given.gpus.push_back(gpu);
  }
  return given;
}

std::string holders(const std::vector<Claim>& claims, Resource what, const std::string& user) {
  // The amount of each, and one of its files for a reader who wants to know more about another
  // user's.
  std::map<std::string, std::pair<double, std::string>> amounts;
  for (const Claim& claim : claims) {
    if (!claim.granted) continue;
    const double amount = what == Resource::kGpus    ? static_cast<double>(claim.gpus.size())
                          : what == Resource::kCores ? claim.need.cores
                                                     : static_cast<double>(claim.need.memory);
    const std::string of = claim.user == user ? "" : " of " + claim.user;
    if (amount <= 0) continue;
    auto& [sum, file] = amounts["study " + claim.study + of];
    sum += amount;
    if (!of.empty() && file.empty()) file = ", file " + claim.name;
  }
  std::string list;
  std::size_t said = 0;
  for (const auto& [name, held] : amounts) {
    const auto& [amount, file] = held;
    if (said++ == kMostHolders) return list + ", others";
    const std::string text =
        what == Resource::kMemory ? machine::bytes_text(amount) : number(amount);
    list += (list.empty() ? "" : ", ") + name + ": " + text + file;
  }
  return list;
}

}  // namespace fettle::local
