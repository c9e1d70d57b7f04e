// ExpectedBest: which trial to take where results are noisy (search/gp/recommendation.h). Pure.
#pragma once

#include "cli/views/view.h"

namespace fettle::cli {

// If results are noisy, makes the trial that the model expects to be best the first of
// study.status.best, and sets view.expected_best. Otherwise, and if the best trial has replicates,
// leaves the view as it is. May take some tenths of a second: it fits a model.
void expect_best(RunView& view);

}  // namespace fettle::cli
