// fettle-trainer --worker: trains one trial after another, in each of its slots, and keeps data,
// devices, networks and plans between them (docs/worker-protocol.md).
#pragma once

#include <cstdint>
#include <optional>

namespace fettle::trainer {

// The whole life of a worker: until its assignments end, or it is stopped by a signal. `slots`:
// instead of FETTLE_WORKER_SLOTS. Returns the exit code of the process.
int run_worker(std::optional<std::int64_t> slots);

}  // namespace fettle::trainer
