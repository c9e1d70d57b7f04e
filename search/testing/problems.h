// Helpers of this folder's tests: short ways to write a space, random spaces, and the definition of
// a valid point, independent of Space.
#pragma once

#include <string>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/philox.h"
#include "search/search.h"

namespace fettle::search::testing {

// True under a sanitizer, which slows models fifty times: tests then use smaller samples and do not
// measure the quality of a search.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

api::Parameter real(std::string name, double min, double max,
                    api::Scale scale = api::Scale::kLinear);
api::Parameter stepped(std::string name, double min, double max, double step);
api::Parameter integer(std::string name, double min, double max,
                       api::Scale scale = api::Scale::kLinear);
api::Parameter choice(std::string name, std::vector<Json> values);
api::Parameter boolean(std::string name);
// The same parameter, existing only if `parameter` has one of the values `in`.
api::Parameter only_if(api::Parameter child, std::string parameter, std::vector<Json> in);

// One to `most` parameters of every type and scale, about half of them conditional on an earlier
// one. `finite`: no continuum, and only a few values per parameter.
std::vector<api::Parameter> random_space(Random& random, int most, bool finite);

// Returns "" for a valid point: exactly the active parameters, in order, each within bounds and on
// its step; otherwise the fault.
std::string complaint(const std::vector<api::Parameter>& parameters, const Json& point);

// Every point of a finite space, found by trying every value of every parameter in turn.
std::vector<Json> enumerate(const std::vector<api::Parameter>& parameters);

// A problem for `algorithm`; "gp_cost" is gp with costAware, and so on.
Problem problem_of(std::vector<api::Parameter> parameters, std::string algorithm,
                   std::int64_t seed = 1);

// Whether the algorithm's trials are members of a population, which may begin alike.
bool is_population(const std::string& algorithm);

// Names of the samplers that can search any space: all except the replay of a schedule.
std::vector<std::string> searching_samplers();
// The same, followed by the cost-aware modes.
std::vector<std::string> samplers_in_every_mode();

// A result for a trial; nullopt = infeasible.
Event result(std::int64_t trial, std::optional<double> value);
Event fact(std::int64_t trial, api::FactKind kind, std::int64_t step, std::optional<double> value);

}  // namespace fettle::search::testing
