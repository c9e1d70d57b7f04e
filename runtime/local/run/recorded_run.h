// The runs of an earlier `fettle run`, as it left them on the disk. Reads files; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "api/trial.h"
#include "core/plan.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/store/layout.h"
#include "runtime/metric_lines.h"

namespace fettle::local {

// Whether the trial file of this run was written, which happens before it begins. The file of a
// trial of the same name, of a Study that was deleted since, does not count.
bool was_prepared(const Layout& layout, const api::Trial& trial, std::int64_t run);

// How the output of a trial is read; nothing where its Study is not known.
using HowToRead = std::function<std::optional<runtime::MetricLinesOptions>(const api::Trial&)>;

// How the run ended: as outcome.json says, else Disrupted, with what its log reports: of its last
// moments the log is all that is left. Nothing if it has not begun: then it was prepared at most,
// and is started as if it were new.
//
// The log holds standard output and standard error as they came, and those of all workers. So it
// counts only for a single worker whose lines name their steps, which cannot be miscounted.
std::optional<core::Run> recall_run(const Layout& layout, const api::Trial& trial, std::int64_t run,
                                    const HowToRead& how_to_read);

// Writes an outcome into the run that has ended with it.
void take_outcome(const RunOutcome& outcome, core::Run& run);

}  // namespace fettle::local
