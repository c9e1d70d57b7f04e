// Whether a library's plans run on the device, and how long they take, by CUDA events. Belongs to
// the device's thread.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/cuda/libraries/library_plans.h"

namespace fettle::kernels::cuda {

// Returns the microseconds of one run of the work that `enqueue` enqueues on the device's stream:
// the minimum of a few samples, each of several runs, after one warm-up. Waits for the device.
// Errors: `enqueue`'s.
Result<double> microseconds_of(const Device& device, const std::function<Status()>& enqueue);

// Enqueues one run of a candidate on arrays of zeros, in the order of `bytes`. Errors: it cannot be
// run.
using EnqueueCandidate =
    std::function<Status(std::size_t candidate, std::span<void* const> arrays)>;

// Chooses the plan for `key` from `names`, which are in the library's order: the fastest
// (PlanChooser::choose), timed on arrays of `bytes`, or the first if memory for them is short.
// Errors: the first plan's, if none can be run.
Result<std::size_t> fastest_plan(LibraryPlans& plans, const std::string& key,
                                 std::span<const std::string> names,
                                 std::span<const std::int64_t> bytes,
                                 const EnqueueCandidate& enqueue);

// Enqueues one run on arrays of `bytes`. Errors: `enqueue`'s. Also succeeds if memory for the
// arrays is short.
Status run_once(Device& device, std::span<const std::int64_t> bytes,
                const std::function<Status(std::span<void* const>)>& enqueue);

}  // namespace fettle::kernels::cuda
