// Hints for typos. Pure functions; usable from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fettle::api {

// Returns the candidate nearest to `name` if at most a third of its letters are inserted, deleted,
// changed or swapped with a neighbour (optimal string alignment distance), case aside; else "".
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

// Returns "; did you mean metric?" or "". Also knows words of other tuners, Double for Optuna's
// float, and of earlier versions: "; dehb was removed: use bohb".
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace fettle::api
