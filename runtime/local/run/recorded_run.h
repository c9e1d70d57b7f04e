// Reads the runs that an earlier `fettle run` left on the disk. Reads files; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "api/trial/trial.h"
#include "core/plan.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/store/layout.h"
#include "runtime/metric_lines.h"

namespace fettle::local {

// Whether the trial file of this run was written, which happens before it begins. The file of an
// equally named trial of a Study that was deleted since does not count.
bool was_prepared(const Layout& layout, const api::Trial& trial, std::int64_t run);

// How the output of a trial is read; absent if its Study is unknown.
using FindMetricOptions =
    std::function<std::optional<runtime::MetricLinesOptions>(const api::Trial&)>;

// Returns how the run ended: as outcome.json says, else Disrupted with the reports in its log,
// which is all that remains of its last moments. Absent if it has not begun: it was then prepared
// at most, and is started like a new run.
//
// The log mixes standard output and standard error of all workers. So its reports count only for a
// single worker whose lines name their steps, which cannot be miscounted.
std::optional<core::Run> recall_run(const Layout& layout, const api::Trial& trial, std::int64_t run,
                                    const FindMetricOptions& find_metric_options);

// Copies an outcome into the run that has ended with it.
void take_outcome(const RunOutcome& outcome, core::Run& run);

}  // namespace fettle::local
