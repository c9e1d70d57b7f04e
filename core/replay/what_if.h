// Simulates another rule of early stopping on the trials that ran: which of them it would have
// stopped, when, and how much that would have saved. No values are invented: a trial that was
// stopped, and that the other rule would have let continue, counts as unknown from there on.
//
// The records have times only for steps that were judged. The times of other steps are interpolated
// linearly between them.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"

namespace fettle::core {

// Whether the trials of a Study can tell what `algorithm` would have suggested. They cannot if
// trials take over from each other under either algorithm, because each trial then continues one
// that really ran. Error: a sentence that explains this.
Status check_what_if_algorithm(const api::Study& study, api::AlgorithmKind algorithm);

struct WhatIfStop {
  std::string trial;
  std::int64_t step = 0;     // at which it would have been stopped
  std::int64_t reached = 0;  // the last step that it really made
  std::string reason;        // the judge's words
};

struct WhatIf {
  std::vector<WhatIfStop> stops;  // in the order in which they would have come
  std::int64_t steps = 0;         // that all trials really made
  std::int64_t saved = 0;         // steps saved by the stops
  std::int64_t unknown = 0;       // trials that were stopped and would have continued
  std::string best;               // the best trial; "" = none
  std::string best_left;          // the best trial that the other rule would not have stopped
};

// `trials` are all of the Study, sorted by index.
WhatIf simulate_stopping(const api::Study& study, const api::EarlyStopping& rules,
                         const std::vector<api::TrialPtr>& trials);

}  // namespace fettle::core
