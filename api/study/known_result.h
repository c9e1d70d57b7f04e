// KnownResult: a result from elsewhere that a search begins with, an item of spec.warmStart.known
// and a line of the file that spec.warmStart.results names:
//
//   {"parameters": {"lr": 0.01}, "values": {"loss": 0.41}, "step": 27, "name": "optuna-3"}
//
// Parameters have the names that the other tuner gave them. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

struct KnownResult {
  Json parameters = Json::object();
  std::map<std::string, double> values;  // by metric
  std::optional<std::int64_t> step;      // up to which it was trained; absent: to its end
  bool stopped = false;                  // ended early, whatever its step
  std::string name;                      // of the trial there; "" = unknown
};

// Unknown members are errors, as in a Study.
Result<KnownResult> read_known_result(const Json& document);

}  // namespace fettle::api
