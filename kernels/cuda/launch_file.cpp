#include "kernels/cuda/launch_file.h"

#include <limits>
#include <utility>

#include "base/cache_folder.h"
#include "base/file.h"

namespace fettle::kernels::cuda {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

// "NVIDIA H100 80GB HBM3": "nvidia-h100-80gb-hbm3".
std::string file_name(std::string_view device) {
  std::string name;
  for (const char c : device) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '-';
  }
  return name;
}

Status check_kind(const Json& file, const GpuKind& kind) {
  const std::pair<const char*, const std::string&> expected[] = {
      {"device", kind.name},
      {"compute_capability", kind.compute_capability},
      {"cuda", kind.cuda},
      {"fettle", kind.fettle}};
  for (const auto& [key, value] : expected) {
    const Json* const found = file.find(key);
    if (found != nullptr && *found == Json(value)) continue;
    return invalid(std::string(key) + ": found " + (found == nullptr ? "nothing" : found->dump()) +
                   ", expected " + Json(value).dump());
  }
  return success();
}

// 0 where there is none.
Result<unsigned> read_count(const Json& config, const char* key) {
  const Json* const found = config.find(key);
  if (found == nullptr) return 0U;
  if (found->is_integer() && found->as_integer() >= 0 &&
      found->as_integer() <= std::numeric_limits<int>::max()) {
    return static_cast<unsigned>(found->as_integer());
  }
  return invalid(std::string(key) + ": found " + found->dump() + ", expected a whole number");
}

Result<LaunchConfig> read_config(const std::string& kernel, const Json& json) {
  FETTLE_ASSIGN(const TunableKernel known, find_tunable(kernel));
  LaunchConfig config;
  FETTLE_ASSIGN(config.threads, read_count(json, "threads"));
  FETTLE_ASSIGN(config.blocks_per_multiprocessor, read_count(json, "blocks_per_multiprocessor"));
  FETTLE_TRY(check_config(known, config));
  return config;
}

}  // namespace

std::string launch_file_path(const GpuKind& kind) {
  const std::string folder = cache_folder("FETTLE_KERNEL_CACHE", "kernels");
  if (folder.empty()) return "";
  return folder + "/" + file_name(kind.name + " " + kind.compute_capability) + ".json";
}

Json to_json(const GpuKind& kind, const LaunchConfigs& configs) {
  Json kernels = Json::object();
  for (const auto& [name, config] : configs) {
    Json json = Json::object({{"threads", std::int64_t{config.threads}}});
    if (config.blocks_per_multiprocessor != 0) {
      json.set("blocks_per_multiprocessor", std::int64_t{config.blocks_per_multiprocessor});
    }
    kernels.set(name, std::move(json));
  }
  return Json::object({{"device", kind.name},
                       {"compute_capability", kind.compute_capability},
                       {"cuda", kind.cuda},
                       {"fettle", kind.fettle},
                       {"kernels", std::move(kernels)}});
}

Result<LaunchConfigs> read_launch_configs(std::string_view text, const GpuKind& kind) {
  FETTLE_ASSIGN(const Json file, parse_json(text));
  FETTLE_TRY(check_kind(file, kind));
  const Json* const kernels = file.find("kernels");
  if (kernels == nullptr || !kernels->is_object()) {
    return invalid("kernels: expected an object");
  }
  LaunchConfigs configs;
  for (const auto& [name, json] : kernels->as_object()) {
    FETTLE_ASSIGN(const LaunchConfig config, read_config(name, json));
    configs.emplace(name, config);
  }
  return configs;
}

Result<LaunchConfigs> load_launch_configs(const GpuKind& kind) {
  const std::string path = launch_file_path(kind);
  if (path.empty()) return LaunchConfigs{};
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return LaunchConfigs{};
  Result<LaunchConfigs> configs = text.ok() ? read_launch_configs(*text, kind) : text.error();
  if (configs.ok()) return configs;
  Error error = configs.error();
  const bool names_it = error.message.find(path) != std::string::npos;
  if (!names_it) error = std::move(error).in(path);
  error.message +=
      "; the usual launch configurations are used, `fettle-trainer --tune-kernels` "
      "measures them anew";
  return error;
}

Result<std::string> save_launch_configs(const GpuKind& kind, const LaunchConfigs& configs) {
  std::string path = launch_file_path(kind);
  if (path.empty()) {
    return invalid(
        "there is no place to keep launch configurations: set FETTLE_KERNEL_CACHE to a "
        "folder, or HOME");
  }
  FETTLE_TRY(make_directories(path.substr(0, path.rfind('/'))));
  FETTLE_TRY(write_file(path, to_json(kind, configs).dump(2) + "\n"));
  return path;
}

}  // namespace fettle::kernels::cuda
