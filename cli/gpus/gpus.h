// What `fettle gpus` prints. Pure functions; usable from any thread.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/gpus/inventory.h"
#include "cli/views/text.h"

namespace fettle::cli {

// Tables for people. `program`: how hints call this program.
std::string render_gpus(const GpuInventory& inventory, const std::string& program,
                        const Style& style);
// Values of the chart: the profiles that are proposed, as YAML.
std::string render_gpu_values(const GpuInventory& inventory);
// Everything, for programs.
Json gpus_json(const GpuInventory& inventory);

}  // namespace fettle::cli
