// Whether a library's plans run on the device, and how long they take, by CUDA events. Belongs to
// the device's thread.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/cuda/libraries/library_plans.h"

namespace fettle::kernels::cuda {

// Microseconds of one run of what `enqueue` enqueues on the device's stream: the least of a few
// samples, each of several runs, after one that does not count. Waits for the device. Errors:
// those of `enqueue`.
Result<double> microseconds_of(const Device& device, const std::function<Status()>& enqueue);

// Enqueues one run of a candidate on arrays that hold zeros, in the order of `bytes`. Errors: it
// cannot be run.
using EnqueueCandidate =
    std::function<Status(std::size_t candidate, std::span<void* const> arrays)>;

// Which of the plans `names`, in the library's order, is run for `key` from now on: the fastest
// (PlanChooser::choose), timed on arrays of `bytes`, or the first where there is no memory for
// them. Errors: that of the first, where none can be run.
Result<std::size_t> fastest_plan(LibraryPlans& plans, const std::string& key,
                                 std::span<const std::string> names,
                                 std::span<const std::int64_t> bytes,
                                 const EnqueueCandidate& enqueue);

// Enqueues one run on arrays of `bytes`. Errors: those of `enqueue`. Success, too, where there is
// no memory for the arrays.
Status run_once(Device& device, std::span<const std::int64_t> bytes,
                const std::function<Status(std::span<void* const>)>& enqueue);

}  // namespace fettle::kernels::cuda
