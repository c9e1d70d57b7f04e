// The search problem that a Study poses, with what `auto` decides about steps (auto.h) settled:
// what is read of its algorithm and its early stopping from here on is what is in force. Pure
// functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/study.h"
#include "search/search.h"

namespace fettle::search {

// Without what earlier Studies found, which the spec does not know.
Problem problem_of(const api::StudySpec& spec);

// The steps at which a Rung fact is wanted of the Study's trials (search.h).
std::vector<std::int64_t> rung_steps(const api::StudySpec& spec);

}  // namespace fettle::search
