#include "cli/doctor/doctor_page.h"

#include <array>
#include <cstdio>
#include <iterator>
#include <map>

#include "base/machine/cuda_support.h"
#include "base/machine/units.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

constexpr int kNameColumn = 11;

std::string bytes(std::int64_t count) { return machine::bytes_text(static_cast<double>(count)); }

std::string number(double value, int decimals) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

// "  memory     23.5 GiB ...". An empty name continues the row before.
std::string row(const std::string& name, const std::string& value) {
  return "  " + padded(name, kNameColumn) + value + "\n";
}

// The resources that the trials of one Study hold.
struct Use {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t gpus = 0;
  double cores = 0;
  std::int64_t memory = 0;

  void add(const local::Claim& claim) {
    ++(claim.granted ? running : waiting);
    if (!claim.granted) return;
    gpus += std::ssize(claim.gpus);
    cores += claim.need.cores;
    memory += claim.need.memory;
  }
  std::string text() const {
    if (running == 0) return std::to_string(waiting) + " waiting for room";
    std::string said = plural(running, "trial") + " with " + number(cores, 1) + " cores";
    if (gpus > 0) said += ", " + plural(gpus, "GPU");
    if (memory > 0) said += ", " + bytes(memory) + " of memory";
    if (waiting > 0) said += "; " + std::to_string(waiting) + " waiting for room";
    return said;
  }
};

// ---- The machine -------------------------------------------------------------------------------

std::string cpu_rows(const machine::Machine& machine) {
  const machine::Cpu& cpu = machine.cpu;
  std::string features;
  for (const std::string& feature : cpu.features) features += " " + feature;
  std::string text = row("CPU", printable(cpu.model) + ": " + plural(cpu.cores, "core") + ", " +
                                    plural(cpu.logical, "thread") + ", " +
                                    plural(cpu.sockets, "socket") + ";" + features);
  return text + row("", number(machine.cores, 1) + " usable");
}

std::string container_row(const machine::CgroupLimits& limits) {
  if (!limits.cores && !limits.memory) return row("container", "no limits");
  std::string text;
  if (limits.cores) text = number(*limits.cores, 2) + " cores";
  if (limits.memory) text += (text.empty() ? "" : ", ") + bytes(*limits.memory) + " of memory";
  return row("container", "at most " + text);
}

std::string disk_row(const machine::Disk& disk) {
  return row("disk", bytes(disk.free) + " of " + bytes(disk.total) + " free in " +
                         printable(disk.directory));
}

std::string describe(const machine::Gpu& gpu) {
  std::string text = printable(gpu.name) + ": " + bytes(gpu.memory) + ", " +
                     bytes(gpu.memory_free) + " free; compute capability " +
                     std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
  if (gpu.power_limit) text += ", " + number(*gpu.power_limit, 0) + " W at most";
  if (gpu.nvlinks > 0) text += ", " + plural(gpu.nvlinks, "NVLink");
  if (gpu.mig) text += *gpu.mig ? ", MIG on" : ", MIG off";
  return text;
}

std::string gpu_rows(const machine::Gpus& gpus) {
  if (!gpus.missing.empty()) return row("GPUs", "none: " + printable(gpus.missing));
  // gpus.cuda: 13000 is 13.0, 12040 is 12.4.
  std::string text = row("GPUs", plural(std::ssize(gpus.all), "GPU") + "; driver " + gpus.driver +
                                     ", for CUDA up to " + std::to_string(gpus.cuda / 1000) + "." +
                                     std::to_string(gpus.cuda % 1000 / 10));
  const std::string driver = machine::why_no_driver(gpus);
  text += row(
      "", printable(driver.empty() ? "the driver will do for the trainer's CUDA backend" : driver));
  for (const machine::Gpu& gpu : gpus.all) {
    text += row("", describe(gpu));
    if (const std::string why = machine::why_no_gpu(gpu); !why.empty()) text += row("", "  " + why);
    for (const machine::GpuInstance& instance : gpu.instances) {
      text += row("", "  " + printable(instance.name) + ": " + bytes(instance.memory));
    }
  }
  return text;
}

// Lists what trials of `fettle run` can use here, and what others use now.
std::string shared_rows(const Shared& shared) {
  const local::Room& room = shared.room;
  std::string names;
  for (const local::GpuName& gpu : room.gpus) {
    // The value for CUDA_VISIBLE_DEVICES, and the UUID if that is another name.
    const std::string id = gpu.id == gpu.cuda ? gpu.cuda : gpu.cuda + " (" + gpu.id + ")";
    names += (names.empty() ? ": " : ", ") + printable(id);
  }
  const auto gpus = std::ssize(room.gpus);
  std::string text =
      row("for trials", number(room.cores, 1) + " cores, " + bytes(room.memory) + " of memory, " +
                            (gpus == 0 ? "no GPU" : plural(gpus, "GPU") + names));
  text += row("", "open files for " + format_count(room.runs) + " at once");
  if (!shared.problem.empty()) {
    return text + row("Studies",
                      "other Studies on this machine are not seen: " + printable(shared.problem));
  }
  if (shared.claims.empty()) return text + row("Studies", "no trial runs on this machine now");
  std::map<std::string, Use> uses;
  for (const local::Claim& claim : shared.claims) {
    // The file states the process; the user is the file's owner.
    uses[claim.study + " of " + claim.user + " (process " + std::to_string(claim.runner) + ")"].add(
        claim);
  }
  std::string name = "Studies";
  for (const auto& [study, use] : uses) {
    text += row(name, printable(study) + ": " + use.text());
    name.clear();
  }
  name = "workers";
  for (const std::string& workers : shared.workers) {
    text += row(name, workers);
    name.clear();
  }
  return text;
}

std::string trainer_rows(const Examination& examination) {
  if (!examination.backends.is_object()) {
    return row("trainer", "not found: " + printable(examination.trainer_missing));
  }
  std::string text;
  for (const auto& [name, state] : examination.backends.as_object()) {
    const std::string said = state.is_string() ? printable(state.as_string()) : "";
    text += row(text.empty() ? "trainer" : "", "backend " + name + ": " + said);
  }
  return text;
}

// ---- JSON --------------------------------------------------------------------------------------

Json instance_json(const machine::GpuInstance& instance) {
  return Json::object(
      {{"name", instance.name}, {"uuid", instance.uuid}, {"memory", instance.memory}});
}

Json gpu_json(const machine::Gpu& gpu) {
  return Json::object(
      {{"name", gpu.name},
       {"uuid", gpu.uuid},
       {"computeCapability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
       {"memory", gpu.memory},
       {"memoryFree", gpu.memory_free},
       {"mig", gpu.mig},
       {"instances", Json::array_of(gpu.instances, instance_json)},
       {"whyNotTrainer", machine::why_no_gpu(gpu)},
       {"nvlinks", gpu.nvlinks},
       {"powerLimitWatts", gpu.power_limit}});
}

Json machine_json(const machine::Machine& m) {
  return Json::object(
      {{"cpu", Json::object({{"model", m.cpu.model},
                             {"cores", m.cpu.cores},
                             {"threads", m.cpu.logical},
                             {"usableCores", m.cores},
                             {"features", Json::array_of(m.cpu.features)}})},
       {"memory", Json::object({{"total", m.memory.total},
                                {"available", m.memory.available},
                                {"usable", m.usable_memory}})},
       {"limits", Json::object({{"cores", m.limits.cores}, {"memory", m.limits.memory}})},
       {"disk", Json::object({{"directory", m.disk.directory},
                              {"writable", m.disk.writable},
                              {"free", m.disk.free},
                              {"total", m.disk.total}})},
       {"driver", m.gpus.driver},
       {"whyNotTrainer", machine::why_no_driver(m.gpus)},
       {"gpus", Json::array_of(m.gpus.all, gpu_json)}});
}

Json gpu_name_json(const local::GpuName& gpu) {
  return Json::object({{"id", gpu.id}, {"visibleAs", gpu.cuda}});
}

Json claim_json(const local::Claim& claim) {
  return Json::object({{"study", claim.study},
                       {"run", claim.run},
                       {"user", claim.user},
                       {"process", claim.runner},
                       {"waits", !claim.granted},
                       {"cores", claim.need.cores},
                       {"memory", claim.need.memory},
                       {"gpus", claim.granted ? Json::array_of(claim.gpus) : Json::array()}});
}

Json shared_json(const Shared& shared) {
  return Json::object({{"cores", shared.room.cores},
                       {"memory", shared.room.memory},
                       {"trialsByOpenFiles", shared.room.runs},
                       {"gpus", Json::array_of(shared.room.gpus, gpu_name_json)},
                       {"directory", shared.directory},
                       {"problem", shared.problem},
                       {"runs", Json::array_of(shared.claims, claim_json)}});
}

}  // namespace

std::string doctor_text(const Examination& examination) {
  const machine::Machine& machine = examination.machine;
  std::string text = "This machine\n" + cpu_rows(machine);
  text += row("memory", bytes(machine.memory.total) + ", " + bytes(machine.memory.available) +
                            " free, " + bytes(machine.usable_memory) + " usable");
  text += container_row(machine.limits) + disk_row(machine.disk) + gpu_rows(machine.gpus) +
          shared_rows(examination.shared) + trainer_rows(examination);
  for (const std::string& warning : examination.warnings) {
    text += "Warning: " + printable(warning) + "\n";
  }
  return text;
}

Json doctor_json(const Examination& examination) {
  return Json::object({{"machine", machine_json(examination.machine)},
                       {"trials", shared_json(examination.shared)},
                       {"backends", examination.backends},
                       {"warnings", Json::array_of(examination.warnings)}});
}

}  // namespace fettle::cli
