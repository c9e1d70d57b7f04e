// fettle gpus: the GPUs of a cluster, and the profiles that its administrator may give the
// operator. Reads with the rights of the user who asks.
#include "cli/gpus/gpus.h"

#include <iostream>
#include <string>
#include <utility>

#include "api/yaml/yaml_text.h"
#include "cli/cluster/cluster.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/gpus/proposal.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMibOfGib = 1024;

std::string memory_text(std::int64_t mib) {
  if (mib == 0) return "-";
  return mib % kMibOfGib == 0 ? std::to_string(mib / kMibOfGib) + "Gi" : std::to_string(mib) + "Mi";
}

std::string free_text(const GpuResource& resource) {
  return resource.used ? format_count(resource.total - *resource.used) : "?";
}

Line row_of(const GpuNode& node, const std::string& name, const GpuResource& resource) {
  const std::string sharing = node.hami ? "HAMi" : node.sharing.empty() ? "-" : node.sharing;
  return {{printable(node.name), Ink::kBold},
          {node.model.empty() ? "-" : printable(node.model)},
          {memory_text(node.mib)},
          {sharing},
          {printable(name)},
          {format_count(resource.total)},
          {resource.used ? format_count(*resource.used) : "?"},
          {free_text(resource)}};
}

std::string describe_devices(const GpuDevices& devices) {
  if (devices.by_memory) return "shared by memory";
  std::string text = devices.mig_profile.empty() ? "whole" : "MIG " + devices.mig_profile;
  return devices.partitioned ? text + ", on demand" : text;
}

Json node_json(const GpuNode& node) {
  Json resources = Json::object();
  for (const auto& [name, resource] : node.resources) {
    Json one = Json::object({{"total", resource.total}});
    if (resource.used) one.set("used", *resource.used);
    resources.set(name, std::move(one));
  }
  return Json::object({{"name", node.name},
                       {"model", node.model},
                       {"memoryMiB", node.mib},
                       {"sharing", node.hami ? "hami" : node.sharing},
                       {"replicas", node.replicas},
                       {"resources", std::move(resources)}});
}

Json devices_json(const GpuDevices& devices) {
  return Json::object({{"driver", devices.driver},
                       {"model", devices.model},
                       {"memoryMiB", devices.mib},
                       {"migProfile", devices.mig_profile},
                       {"sharedByMemory", devices.by_memory},
                       {"partitioned", devices.partitioned},
                       {"count", devices.count}});
}

// Returns the profiles for people: without default values.
Json short_profiles(const GpuInventory& inventory) {
  Json profiles = api::write_gpu_profiles(propose_profiles(inventory));
  for (Json& profile : profiles.as_array()) {
    Json* const put = profile.find("put");
    if (put != nullptr && *put->find("sharedClaim") == Json(false)) put->erase("sharedClaim");
  }
  return profiles;
}

// Returns why nothing can be shown; empty if something can.
std::string why_nothing_is_shown(const GpuInventory& inventory) {
  if (!inventory.nodes.empty() || !inventory.devices.empty()) return "";
  std::string text;
  for (const std::string& missing : inventory.missing) {
    text += (text.empty() ? "" : "; ") + missing;
  }
  return text;
}

}  // namespace

std::string render_gpus(const GpuInventory& inventory, const std::string& program,
                        const Style& style) {
  std::string out;
  std::vector<Line> rows;
  for (const GpuNode& node : inventory.nodes) {
    for (const auto& [name, resource] : node.resources) {
      rows.push_back(row_of(node, name, resource));
    }
  }
  if (!rows.empty()) {
    out = render_lines(table({{"node"},
                              {"card"},
                              {"memory", true},
                              {"shared by"},
                              {"resource"},
                              {"total", true},
                              {"used", true},
                              {"free", true}},
                             rows),
                       kAnyWidth, style);
  }
  rows.clear();
  for (const GpuDevices& devices : inventory.devices) {
    rows.push_back({{printable(devices.driver), Ink::kBold},
                    {devices.model.empty() ? "-" : printable(devices.model)},
                    {memory_text(devices.mib)},
                    {printable(describe_devices(devices))},
                    {format_count(devices.count)}});
  }
  if (!rows.empty()) {
    if (!out.empty()) out += '\n';
    out += render_lines(
        table({{"driver"}, {"card"}, {"memory", true}, {"devices"}, {"count", true}}, rows),
        kAnyWidth, style);
  }
  if (out.empty()) out = "No GPUs were found.\n";
  if (!inventory.schedulers.empty()) {
    out += "\nAlso installed:";
    for (std::size_t i = 0; i < inventory.schedulers.size(); ++i) {
      out += (i == 0 ? " " : ", ") + inventory.schedulers[i];
    }
    out += ".\n";
  }
  for (const std::string& note : inventory.notes) out += "\nNote: " + printable(note) + ".\n";
  for (const std::string& missing : inventory.missing) {
    out += "\nMissing right: " + printable(missing) + ".\n";
  }
  const std::size_t profiles = propose_profiles(inventory).size();
  if (profiles > 0) {
    out += "\n`" + program + " gpus --output values` prints " +
           plural(static_cast<std::int64_t>(profiles), "profile") +
           " for the chart's gpuProfiles; docs/gpus.md explains them.\n";
  }
  return out;
}

std::string render_gpu_values(const GpuInventory& inventory) {
  std::string out;
  for (const std::string& note : inventory.notes) out += "# " + printable(note) + ".\n";
  for (const std::string& missing : inventory.missing) {
    out += "# Missing right: " + printable(missing) + ".\n";
  }
  const Json profiles = short_profiles(inventory);
  if (profiles.as_array().empty()) return out + "gpuProfiles: []\n";
  return out +
         api::to_yaml(Json::object({{"gpuProfiles", profiles}}), 0, api::YamlLists::kLineEachField);
}

Json gpus_json(const GpuInventory& inventory) {
  return Json::object({{"nodes", Json::array_of(inventory.nodes, node_json)},
                       {"devices", Json::array_of(inventory.devices, devices_json)},
                       {"schedulers", Json::array_of(inventory.schedulers)},
                       {"notes", Json::array_of(inventory.notes)},
                       {"missingRights", Json::array_of(inventory.missing)},
                       {"gpuProfiles", api::write_gpu_profiles(propose_profiles(inventory))}});
}

Result<int> gpus_command(const Target& place, const GpusOptions& options) {
  if (!place.on_cluster) {
    return invalid(
        "gpus looks at a cluster: use `kubectl fettle gpus` or --on cluster; `fettle doctor` shows "
        "the GPUs of this machine");
  }
  FETTLE_ASSIGN(const Cluster cluster, reach_cluster(place));
  kube::Client client(*cluster.transport, client_options());
  FETTLE_ASSIGN(const GpuInventory inventory, read_gpu_inventory(client));
  // An empty list would look as if there were no GPUs, and remove the existing profiles.
  if (const std::string why = why_nothing_is_shown(inventory); !why.empty()) {
    return Error{ErrorCode::kForbidden,
                 why +
                     ": ask an administrator of the cluster, or for a role that may list nodes, "
                     "pods, deviceclasses and resourceslices"};
  }
  switch (options.output) {
    case Output::kJson:
      std::cout << gpus_json(inventory).dump() << '\n';
      break;
    case Output::kYaml:
      std::cout << render_gpu_values(inventory);
      break;
    default:
      std::cout << render_gpus(inventory, cluster.program, style_of_stdout());
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
