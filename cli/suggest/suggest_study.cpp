#include "cli/suggest/suggest_study.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/fields/field_errors.h"
#include "api/fields/field_reader.h"
#include "cli/suggest/suggest_points.h"
#include "cli/suggest/suggest_request.h"
#include "search/auto.h"

namespace fettle::cli {
namespace {

constexpr api::EnumName<VariableType> kVariableTypes[] = {
    {VariableType::kFloat, "float"},
    {VariableType::kInt, "int"},
    {VariableType::kCategorical, "categorical"},
    {VariableType::kBool, "bool"},
};
constexpr api::EnumName<SuggestDirection> kDirections[] = {
    {SuggestDirection::kMinimize, "minimize"}, {SuggestDirection::kMaximize, "maximize"}};

// All errors in one line, as a reply is one.
Error in_one_line(api::FieldErrors errors) {
  std::string text = api::to_string(std::move(errors).take());
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at)) {
    text.replace(at, 1, "; ");
  }
  return invalid(std::move(text));
}

void check_constraints(const SuggestRequest& request, const api::FieldPath& root,
                       api::FieldErrors& errors) {
  for (std::size_t i = 0; i < request.constraints.size(); ++i) {
    const api::Constraint& constraint = request.constraints[i];
    const bool is_bound = constraint.min || constraint.max;
    const bool crosses = constraint.min && constraint.max && *constraint.min > *constraint.max;
    if (is_bound && !crosses) continue;
    errors.add(root.member("constraints").item(i),
               crosses ? "min must not be above max" : "give min, max or both");
  }
}

Result<SuggestRequest> read_request(const Json& json) {
  if (!json.is_object()) return invalid("study must be an object; found " + api::describe(json));
  SuggestRequest out;
  const api::FieldPath path;
  api::FieldErrors errors(api::UnknownFields::kMistakes, api::Spelling::kSnakeCase);
  api::FieldReader reader(json, path, errors);
  visit_fields(reader, out);  // without finish(): clients may send more
  const bool both = out.direction && out.directions;
  if (both) {
    errors.add(path, "give direction for one objective or directions for several, not both");
  }
  const std::size_t count = out.directions ? out.directions->size() : 1;
  if (!out.objectives.empty() && out.objectives.size() != count) {
    errors.add(path.member("objectives"), "give one name for each direction: expected " +
                                              std::to_string(count) + ", found " +
                                              std::to_string(out.objectives.size()));
  }
  check_constraints(out, path, errors);
  if (errors.empty()) return out;
  return in_one_line(std::move(errors));
}

api::ParameterType type_of(VariableType type) {
  switch (type) {
    case VariableType::kFloat:
      return api::ParameterType::kDouble;
    case VariableType::kInt:
      return api::ParameterType::kInteger;
    case VariableType::kCategorical:
      return api::ParameterType::kCategorical;
    case VariableType::kBool:
      break;
  }
  return api::ParameterType::kBoolean;
}

api::Parameter parameter_of(Variable&& variable) {
  api::Parameter out;
  out.name = std::move(variable.name);
  out.type = type_of(variable.type);
  out.min = variable.low;
  out.max = variable.high;
  out.step = variable.step;
  out.scale = variable.log ? api::Scale::kLog : api::Scale::kLinear;
  out.values = std::move(variable.choices);
  if (variable.when) {
    out.when = {std::move(variable.when->param), std::move(variable.when->in)};
  }
  return out;
}

std::string objective_name(const SuggestRequest& request, std::size_t index, std::size_t count) {
  if (!request.objectives.empty()) return request.objectives[index];
  return count == 1 ? "value" : "value" + std::to_string(index);
}

std::vector<api::Objective> objectives_of(const SuggestRequest& request) {
  const std::vector<SuggestDirection> one{request.direction.value_or(SuggestDirection::kMinimize)};
  std::vector<api::Objective> out;
  const std::vector<SuggestDirection> directions = request.directions.value_or(one);
  for (const SuggestDirection direction : directions) {
    const bool minimizes = direction == SuggestDirection::kMinimize;
    out.push_back({objective_name(request, out.size(), directions.size()),
                   minimizes ? api::Direction::kMinimize : api::Direction::kMaximize,
                   {},
                   api::Take::kLast});
  }
  return out;
}

// A client that gives a resource but no rule mentions steps because it wants to save some, so it
// must be able to resume, and gets pauses. That wish counts however few the trials are: few_trials
// is false.
Status settle_fidelity(search::Problem& problem) {
  search::settle_fidelity(problem, {.resumes = true, .limits_work = true, .few_trials = false});
  const api::AlgorithmKind name = problem.algorithm.name;
  if (!api::pauses_trials(name)) return success();
  if (problem.early_stopping) {
    return invalid("algorithm " + name_of(name) +
                   " itself decides which trials continue; leave early_stopping out");
  }
  if (problem.resource.max <= problem.resource.min) {
    return invalid("algorithm " + name_of(name) +
                   " compares trials on the way; give a resource with max above min");
  }
  if (api::traits(name).population && problem.max_trials < api::kLeastMembers) {
    return invalid("algorithm " + name_of(name) + " needs max_trials of at least " +
                   std::to_string(api::kLeastMembers) + ": it is the population");
  }
  return success();
}

}  // namespace

api::EnumNames<VariableType> names_of(VariableType /*any*/) { return kVariableTypes; }
api::EnumNames<SuggestDirection> names_of(SuggestDirection /*any*/) { return kDirections; }

Result<SuggestStudy> read_suggest_spec(const Json& study) {
  FETTLE_ASSIGN(SuggestRequest request, read_request(study));
  // 0: absent.
  if (request.resource.max == 0) request.resource.max = request.resource.min;
  if (request.resource.max < request.resource.min) {
    return invalid("resource.max: found " + std::to_string(request.resource.max) +
                   ", expected at least min, which is " + std::to_string(request.resource.min));
  }
  SuggestStudy out;
  out.spec.objectives = objectives_of(request);
  out.max_trials = request.max_trials;
  out.parallel = request.parallel;
  out.max_cost = request.max_cost;
  out.spec.algorithm = std::move(request.algorithm);
  out.spec.resource = std::move(request.resource);
  out.spec.early_stopping = request.early_stopping;
  out.spec.constraints = std::move(request.constraints);
  std::ranges::transform(request.space, std::back_inserter(out.spec.parameters),
                         [](Variable& variable) { return parameter_of(std::move(variable)); });
  if (!request.first.empty()) {
    FETTLE_TRY(check_first_points(out.spec.parameters, request.first));
    out.spec.warm_start.emplace().points = std::move(request.first);
  }
  FETTLE_ASSIGN(out.priors, priors_of(out.spec, request.results));
  return out;
}

Result<search::Problem> problem_of(const SuggestStudy& study) {
  search::Problem problem;
  problem.objectives = study.spec.objectives;
  problem.max_trials = study.max_trials;
  problem.parallelism = study.parallel;
  problem.max_cost = study.max_cost;
  problem.algorithm = study.spec.algorithm;
  problem.resource = study.spec.resource;
  problem.early_stopping = study.spec.early_stopping;
  FETTLE_TRY(settle_fidelity(problem));
  problem.parameters = study.spec.parameters;
  if (study.spec.warm_start) problem.first_points = study.spec.warm_start->points;
  problem.priors = study.priors;
  return problem;
}

Result<search::Problem> read_suggest_study(const Json& study) {
  FETTLE_ASSIGN(const SuggestStudy read, read_suggest_spec(study));
  return problem_of(read);
}

Result<std::vector<api::PriorObservation>> read_known(const api::StudySpec& spec,
                                                      const Json& list) {
  KnownResults results;
  const api::FieldPath path;
  api::FieldErrors errors(api::UnknownFields::kMistakes, api::Spelling::kSnakeCase);
  const Json document = Json::object({{"known", list}});
  api::FieldReader reader(document, path, errors);
  visit_fields(reader, results);
  if (!errors.empty()) return in_one_line(std::move(errors));
  return priors_of(spec, results);
}

}  // namespace fettle::cli
