// StudyRequest: the study line of the suggest protocol (suggest.h) as a struct with a field list
// (api/fields/field.h). Algorithm, resource and early stopping share the lists of a Study, so
// bounds cannot drift; here their names are spelt with underscores. A space has only the search's
// own limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "api/study/study_fields.h"
#include "base/json.h"

namespace fettle::cli {

enum class VariableType { kFloat, kInt, kCategorical, kBool };
enum class SuggestDirection { kMinimize, kMaximize };

api::EnumNames<VariableType> names_of(VariableType);
api::EnumNames<SuggestDirection> names_of(SuggestDirection);

inline constexpr std::size_t kMostEntries = 1'000'000;  // of a list; a line is shorter anyway
inline constexpr std::size_t kAnyLength = 16U << 20U;   // bytes of a line

struct VariableCondition {
  std::string param;
  std::vector<Json> in;
};

// A parameter, with the field names of the protocol.
struct Variable {
  std::string name;
  VariableType type = VariableType::kFloat;
  double low = 0;
  double high = 0;
  bool log = false;
  std::optional<double> step;
  std::vector<Json> choices;
  std::optional<VariableCondition> when;
};

// A result from elsewhere.
struct KnownResult {
  Json params;
  std::optional<double> value;                // of one objective
  std::optional<std::vector<double>> values;  // one for each objective
  std::optional<std::int64_t> step;           // absent: the last one
};

// The results of a study line or of a `known` request.
struct KnownResults {
  std::vector<KnownResult> known;
};

struct SuggestRequest {
  std::string name;
  std::int64_t max_trials = 0;  // 0 = no limit known
  std::int64_t parallel = 0;    // 0 = not known
  std::optional<double> max_cost;
  std::optional<SuggestDirection> direction;
  std::optional<std::vector<SuggestDirection>> directions;
  std::vector<std::string> objectives;  // their names
  api::Algorithm algorithm;
  api::Resource resource{"step", 1, 0};  // max 0: equal to min
  std::optional<api::EarlyStopping> early_stopping;
  std::vector<Variable> space;
  std::vector<api::Constraint> constraints;
  std::vector<Json> first;
  KnownResults results;
};

template <class Visitor, api::Like<VariableCondition> T>
void visit_fields(Visitor& v, T& c) {
  v.field("param", c.param, "Name of a parameter declared earlier.",
          api::text(0, kAnyLength).needed());
  v.field("in", c.in, "Values of that parameter for which this one exists.",
          api::list(0, kMostEntries).needed());
}

template <class Visitor, api::Like<Variable> T>
void visit_fields(Visitor& v, T& c) {
  constexpr std::string_view kNumeric = "type float or int";
  v.field("name", c.name, "Name of the parameter.", api::text(0, kAnyLength).needed());
  v.field("type", c.type, "float, int, categorical or bool.", api::FieldRules{}.needed());
  const bool is_numeric = c.type == VariableType::kFloat || c.type == VariableType::kInt;
  const api::FieldRules bound =
      api::number(-api::kLargestBound, api::kLargestBound).only_if(is_numeric, kNumeric);
  v.field("low", c.low, "Smallest value, inclusive.", bound.needed());
  v.field("high", c.high, "Largest value, inclusive.", bound.needed());
  v.field("log", c.log, "Whether the scale is logarithmic.",
          api::FieldRules{}.only_if(is_numeric, kNumeric));
  v.field("step", c.step, "Distance between values.", bound);
  v.field("choices", c.choices, "Values to choose from.",
          api::list(0, kMostEntries)
              .needed()
              .only_if(c.type == VariableType::kCategorical, "type categorical"));
  v.field("when", c.when, "Condition under which the parameter exists.");
}

template <class Visitor, api::Like<KnownResult> T>
void visit_fields(Visitor& v, T& c) {
  v.field("params", c.params, "Parameters, by name.",
          api::FieldRules{}.as(api::Form::kObject).needed());
  v.field("value", c.value, "Value of the objective.");
  v.field("values", c.values, "One value for each objective.", api::list(1, kMostEntries));
  v.field("step", c.step, "Step at which it was measured.", api::whole(0, api::kLargestWhole));
}

template <class Visitor, api::Like<KnownResults> T>
void visit_fields(Visitor& v, T& c) {
  v.field("known", c.known, "Results from elsewhere.", api::list(0, kMostEntries));
}

template <class Visitor, api::Like<SuggestRequest> T>
void visit_fields(Visitor& v, T& c) {
  const api::FieldRules count = api::whole(0, api::kLargestWhole);
  v.field("name", c.name, "Name of the study; not used.", api::text(0, kAnyLength));
  // Before algorithm, whose own seed takes precedence.
  v.field("seed", c.algorithm.seed, "Seed of the search.",
          api::whole(-api::kLargestWhole, api::kLargestWhole));
  v.field("max_trials", c.max_trials, "Number of trials at most.", count);
  v.field("parallel", c.parallel, "Number of trials that run at the same time.", count);
  v.field("max_cost", c.max_cost, "Limit on the cost of all trials together.",
          api::above(0, api::kLargestBound));
  v.field("direction", c.direction, "minimize or maximize, of one objective.");
  v.field("directions", c.directions, "One direction for each objective.",
          api::list(1, kMostEntries));
  v.field("objectives", c.objectives, "One name for each objective.", api::list(1, kMostEntries));
  v.field("algorithm", c.algorithm, "Algorithm and its settings.");
  v.field("resource", c.resource, "Fewest and most steps of a trial: min and max.");
  v.field("early_stopping", c.early_stopping, "Rule that stops poor trials early.");
  v.field("space", c.space, "List of parameters.", api::list(1, kMostEntries).needed());
  v.field("constraints", c.constraints, "Limits on metrics. A trial outside them is infeasible.",
          api::list(0, api::kMostConstraints));
  v.field("first", c.first, "Points to try first.",
          api::list(0, kMostEntries).as(api::Form::kObject));
  visit_fields(v, c.results);
}

}  // namespace fettle::cli
