#include "machine/bounds.h"

#include <algorithm>
#include <cmath>

#include "machine/units.h"

namespace fettle::machine {
namespace {

std::string bytes(std::int64_t count) { return bytes_text(static_cast<double>(count)); }

const Json* find(const Json& object, std::string_view group, std::string_view key) {
  const Json* const within = group.empty() ? &object : object.find(group);
  return within == nullptr ? nullptr : within->find(key);
}

// Reads the numbers of a dry run; notes the first missing one.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <class Number>
  void take(std::string_view group, std::string_view key, Number& to) {
    const Json* const value = find(json_, group, key);
    if (value != nullptr && value->is_number()) {
      to = static_cast<Number>(value->as_double());
    } else if (missing_.empty()) {
      missing_ = key;
    }
  }
  const std::string& missing() const { return missing_; }

 private:
  const Json& json_;
  std::string missing_;
};

void add_bound(const std::string& name, double work, double rate, const std::string& arithmetic,
               Verdict& to) {
  if (work <= 0 || rate <= 0) return;
  to.bounds.push_back({name, work / rate, arithmetic});
}

// The share of all reads and writes that misses the cache even in the best case.
double share_without_cache(const Need& need, const Rates& rates) {
  const auto all = static_cast<double>(need.memory);
  return rates.cache >= all ? 0 : 1 - rates.cache / all;
}

// Adds the time of each part of a step with a known rate, and finds the longest.
void add_bounds(const Need& need, const Rates& rates, Verdict& to) {
  add_bound("compute", need.flops, rates.flops,
            flops_text(need.flops) + " / " + flops_text(rates.flops) + "/s", to);
  const double uncached = need.memory_bytes * share_without_cache(need, rates);
  add_bound("memory bandwidth", uncached, rates.memory_rate,
            bytes_text(uncached) + (rates.cache > 0 ? " that no cache holds / " : " / ") +
                rate_text(rates.memory_rate),
            to);
  add_bound("data", need.sample_bytes, rates.data_rate,
            bytes_text(need.sample_bytes) + " of samples / " + rate_text(rates.data_rate) +
                " from " + rates.data_from,
            to);
  add_bound("communication", need.message_bytes, rates.network_rate,
            bytes_text(need.message_bytes) + " sent / " + rate_text(rates.network_rate) + " over " +
                rates.network,
            to);
  const auto longest = std::ranges::max_element(
      to.bounds, [](const Bound& a, const Bound& b) { return a.seconds < b.seconds; });
  if (longest != to.bounds.end()) {
    to.binding = static_cast<std::size_t>(longest - to.bounds.begin());
  }
}

// Adds shortages of memory and disk space, with which the training cannot run. `kept`: the number
// of checkpoints.
void check_room(const Machine& machine, const Need& need, const Rates& rates, std::int64_t kept,
                Verdict& to) {
  // Workers on CPUs share the machine's memory; each GPU has its own.
  const std::int64_t workers = rates.on_gpu ? 1 : need.world_size;
  if (need.memory * workers > rates.memory) {
    to.missing.push_back("memory: " + std::to_string(workers) +
                         (workers == 1 ? " worker needs " : " workers need ") +
                         bytes(need.memory * workers) + ", there are " + bytes(rates.memory) +
                         "; a smaller training.maxPerWorker than " +
                         std::to_string(need.samples_at_once) + " needs less");
  }
  const std::int64_t files = need.checkpoint * kept;
  if (files > machine.disk.free) {
    to.missing.push_back("disk: " + std::to_string(kept) + " checkpoints take " + bytes(files) +
                         ", " + bytes(machine.disk.free) + " are free in " +
                         machine.disk.directory);
  }
}

void note_cores(const Machine& machine, const Need& need, Verdict& to) {
  const auto busy = static_cast<double>(need.world_size * need.threads);
  if (busy > machine.cores) {
    to.notes.push_back(std::to_string(need.world_size * need.threads) +
                       " threads (workers x training.threads) share " +
                       std::to_string(static_cast<int>(std::floor(machine.cores))) + " cores");
  }
}

// Rates of the first GPU; requires one.
Rates rates_of_gpu(const Machine& machine, const Need& need) {
  const Gpu& gpu = machine.gpus.all[0];
  Rates rates;
  rates.device = gpu.name;
  rates.on_gpu = true;
  rates.memory = gpu.memory;
  if (const auto peak = peak_of_gpu(gpu.name)) {
    // GpuPeak::fp32 is with TF32, which a training in fp32 does not use.
    rates.flops = need.precision == "fp32"   ? peak->fp32_exact
                  : need.precision == "tf32" ? peak->fp32
                                             : peak->bits16;
    rates.memory_rate = peak->memory;
  }
  rates.data_rate = machine.pci.value_or(0);
  rates.data_from = "the host over PCIe";
  // Rings of GPUs in one machine: over NVLink if it has any.
  rates.network_rate = gpu.nvlinks > 0 ? nvlink_rate(gpu.nvlinks) : machine.pci.value_or(0);
  rates.network = gpu.nvlinks > 0 ? "NVLink" : "PCIe";
  return rates;
}

}  // namespace

Result<Need> read_need(const Json& dry_run) {
  Need need;
  const Json* const precision = dry_run.find("precision");
  if (precision == nullptr || !precision->is_string()) return invalid("precision is missing");
  need.precision = precision->as_string();
  Reader reader(dry_run);
  reader.take("", "threads", need.threads);
  reader.take("", "checkpoint_bytes", need.checkpoint);
  reader.take("memory", "total", need.memory);
  reader.take("step", "world_size", need.world_size);
  reader.take("step", "global_batch", need.global_batch);
  reader.take("step", "samples_at_once", need.samples_at_once);
  reader.take("step", "flops", need.flops);
  reader.take("step", "memory_bytes", need.memory_bytes);
  reader.take("step", "sample_bytes", need.sample_bytes);
  reader.take("step", "message_bytes", need.message_bytes);
  if (!reader.missing().empty()) return invalid(reader.missing() + " is missing");
  return need;
}

Rates rates_for(const Machine& machine, const Need& need, bool on_gpu) {
  if (on_gpu && !machine.gpus.all.empty()) return rates_of_gpu(machine, need);
  // If threads outnumber cores, each worker gets its share.
  const double each = machine.cores / static_cast<double>(need.world_size);
  const double threads = std::min(static_cast<double>(need.threads), each);
  Rates rates;
  rates.device = "CPU, " + std::to_string(need.threads) +
                 (need.threads == 1 ? " thread a worker" : " threads a worker");
  rates.memory = machine.usable_memory;  // shared: check_room() counts all workers' needs
  rates.flops = peak_flops(machine.cpu, threads, /*bits16=*/need.precision != "fp32");
  rates.memory_rate = machine.memory_rate / static_cast<double>(need.world_size);
  rates.cache = machine.cpu.cache;
  // Disk and loopback count as if this worker had them alone: its times stay lower bounds.
  rates.data_rate = machine.disk.rate ? machine.disk.rate->read : 0;
  rates.data_from = "the disk (later epochs: from memory)";
  rates.network_rate = machine.loopback;
  rates.network = "the loopback";
  return rates;
}

Verdict judge(const Machine& machine, const Need& need, const Rates& rates, std::int64_t kept) {
  Verdict verdict;
  add_bounds(need, rates, verdict);
  check_room(machine, need, rates, kept, verdict);
  if (!rates.on_gpu) note_cores(machine, need, verdict);
  return verdict;
}

}  // namespace fettle::machine
