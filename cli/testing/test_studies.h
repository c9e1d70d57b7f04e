// Studies and trials for the tests of the renderers, as they look in the middle of a search.
#pragma once

#include "cli/views/view.h"

namespace fettle::cli {

// Minute 1 of a study with three trials that ended (7: the best, 8: stopped, 9: failed) and two
// that run. Times are milliseconds after kStartMs.
inline constexpr std::int64_t kStartMs = 1'700'000'000'000;
RunView view_in_the_middle();

// The same study ended: two trials are left out, the study has succeeded.
RunView view_at_the_end();

}  // namespace fettle::cli
