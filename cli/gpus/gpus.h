// The output of `fettle gpus`. Pure functions; usable from any thread.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/gpus/inventory.h"
#include "cli/terminal/text.h"

namespace fettle::cli {

// Renders tables for people. `program`: name of this program in hints.
std::string render_gpus(const GpuInventory& inventory, const std::string& program,
                        const Style& style);
// Renders values of the chart: the proposed profiles, as YAML.
std::string render_gpu_values(const GpuInventory& inventory);
// Returns everything, for programs.
Json gpus_json(const GpuInventory& inventory);

}  // namespace fettle::cli
