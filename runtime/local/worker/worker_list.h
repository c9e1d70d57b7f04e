// The list of a Session's workers on the disk, for other processes: `fettle status` and `fettle
// doctor` show it. Usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/worker/worker_pool.h"

namespace fettle::local {

Status write_workers(const Layout& layout, const std::vector<WorkerView>& workers);

// Empty without workers, without a runner, or if the list cannot be read.
std::vector<WorkerView> read_workers(const Layout& layout);

// "2 warm: 236 trials trained, 2 in training, 170 MiB"; "" without workers.
std::string describe(const std::vector<WorkerView>& workers);

}  // namespace fettle::local
