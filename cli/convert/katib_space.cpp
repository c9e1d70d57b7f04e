// An Experiment's parameters.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "api/fields/field.h"
#include "cli/convert/katib_parts.h"
#include "runtime/metric_pattern.h"

namespace fettle::cli {
namespace {

constexpr double kWide = 100;            // max / min from which a log scale matters
constexpr double kGridTolerance = 1e-9;  // in steps
constexpr double kMostSteps = 1e15;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_name_character(char c) {
  return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ||
         c == '-';
}

// A name that a Study accepts: a letter, then letters, digits, '_', '.', '-'.
std::string study_name(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (out.empty() && !is_letter(c)) continue;
    out += is_name_character(c) ? c : '_';
  }
  return out;
}

// `value` without the noise of floating-point arithmetic: 0.1 + 2 * 0.1 is 0.3.
double tidy(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.12g", value);
  return runtime::parse_number(buffer).value_or(value);
}

// One numeric parameter on its way.
struct Range {
  const Source& space;
  const std::string& target;  // "spec.parameters[2]"
  double min = 0;
  double max = 0;
  std::optional<double> step;
};

// A Study wants max on the grid that min and step span; Katib passes over the rest of the range.
void fit_to_grid(Range& range, SourceReader& reader) {
  const double steps = (range.max - range.min) / *range.step;
  if (!std::isfinite(steps) || steps < 0 || steps > kMostSteps) return;  // validation speaks
  if (std::fabs(steps - std::round(steps)) <= kGridTolerance * std::max(1.0, steps)) return;
  const double below = tidy(range.min + std::floor(steps) * *range.step);
  reader.note(range.space.member("max"), range.target + ".max",
              "found " + api::describe(range.max) + ", which no whole number of steps reaches; " +
                  api::describe(below) + " is the last value");
  range.max = below;
}

// Returns whether values are spread on a log scale.
bool is_log(const Range& range, bool is_double, KatibDraft& draft) {
  const Source distribution = range.space.member("distribution");
  const std::string name = draft.reader.text(distribution).value_or("uniform");
  const std::string scale = range.target + ".scale";
  const bool wants_log = name == "logUniform" || name == "logNormal";
  if (name == "normal" || name == "logNormal") {
    draft.reader.note(distribution, scale,
                      "Fettle has no normal distribution: values are spread evenly over the "
                      "range" +
                          std::string(wants_log ? "'s logarithm" : ""));
  } else if (!wants_log && name != "uniform" && name != "unknown") {
    draft.reader.fail(distribution, "found " + api::describe(*distribution.value) +
                                        ", expected uniform, logUniform, normal or logNormal");
  }
  if (wants_log && range.min <= 0) {
    draft.reader.note(distribution, scale,
                      "a log scale needs a min above 0; values are spread evenly instead");
    return false;
  }
  if (wants_log || !is_double || distribution.present() || range.min <= 0) return wants_log;
  if (!draft.by_skopt || range.max / range.min <= kWide) return false;
  draft.reader.note(range.space, scale,
                    "Katib's bayesianoptimization searches every double on a log scale, so this "
                    "one does; use Linear if it is not meant");
  return true;
}

void convert_range(const Source& space, bool is_double, const std::string& target, Json& out,
                   KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const auto min = reader.number(space.member("min"));
  const auto max = reader.number(space.member("max"));
  for (const std::string_view bound : {"min", "max"}) {
    if (!space.member(bound).present()) reader.fail(space.member(bound), "is missing");
  }
  if (!min || !max) return;
  Range range{space, target, *min, *max, reader.number(space.member("step"))};
  if (range.step && *range.step > range.max - range.min && range.min < range.max) {
    reader.note(space.member("step"), target + ".step",
                "is larger than max - min, so the only value is min");
    range.max = range.min;
  }
  const bool counts = !is_double && range.step == 1.0;  // an Integer's own step
  if (range.step && *range.step > 0 && !counts) fit_to_grid(range, reader);
  out.set("type", is_double ? "Double" : "Integer");
  out.set("min", range.min);
  out.set("max", range.max);
  if (range.step && !counts && range.min != range.max) out.set("step", *range.step);
  if (is_log(range, is_double, draft)) out.set("scale", "Log");
  reader.lose_others(space, {"min", "max", "step", "distribution"}, target);
}

// The values of a list: texts, or numbers for type discrete if all differ as numbers, too.
Json::Array values_of(const Source& list, bool as_numbers, SourceReader& reader) {
  Json::Array texts;
  Json::Array numbers;
  for (const Source& item : reader.items(list)) {
    const auto text = reader.text(item);
    if (!text) continue;
    texts.emplace_back(*text);
    const auto number = runtime::parse_number(*text);
    if (!number || !std::isfinite(*number)) {
      as_numbers = false;
      continue;
    }
    const bool whole = std::trunc(*number) == *number && std::fabs(*number) < kMostSteps;
    Json value = whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
    if (std::ranges::find(numbers, value) != numbers.end()) as_numbers = false;
    numbers.push_back(std::move(value));
  }
  return as_numbers ? numbers : texts;
}

void convert_choices(const Source& space, bool discrete, const std::string& target, Json& out,
                     KatibDraft& draft) {
  const Source list = space.member("list");
  if (!list.present()) {
    return draft.reader.fail(list, "is missing; expected the values to choose from");
  }
  out.set("type", "Categorical");
  out.set("values", values_of(list, discrete, draft.reader));
  draft.reader.lose_others(space, {"list", "distribution"}, target);
}

void convert_parameter(const Source& parameter, Json::Array& out, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const std::string target = "spec.parameters[" + std::to_string(out.size()) + "]";
  if (!reader.is_map(parameter)) return reader.fail(parameter, "expected a parameter");
  const Source name = parameter.member("name");
  const auto given = reader.text(name);
  const std::string kept = study_name(given.value_or(""));
  if (kept.empty()) return reader.fail(name, "expected a name that has a letter");
  if (given == draft.resource) return;  // it counts steps: look_at_algorithm()
  if (kept != *given) {
    reader.note(name, target + ".name",
                api::clean_text(*given, 80) + " is no name in a Study; it is called " + kept);
  }
  draft.parameters[*given] = kept;
  Json converted = Json::object();
  converted.set("name", kept);
  const Source type = parameter.member("parameterType");
  const Source space = parameter.member("feasibleSpace");
  const std::string kind = reader.text(type).value_or("");
  if (space.present() && !reader.is_map(space)) return;
  if (kind == "double" || kind == "int") {
    convert_range(space, kind == "double", target, converted, draft);
  } else if (kind == "discrete" || kind == "categorical") {
    convert_choices(space, kind == "discrete", target, converted, draft);
  } else {
    reader.fail(type, "found " + api::describe(type.present() ? *type.value : Json()) +
                          ", expected double, int, discrete or categorical");
  }
  reader.lose_others(parameter, {"name", "parameterType", "feasibleSpace"}, target);
  out.push_back(std::move(converted));
}

}  // namespace

void convert_parameters(const Source& spec, KatibDraft& draft) {
  const Source list = spec.member("parameters");
  if (!list.present()) return draft.reader.fail(list, "is missing; expected parameters to vary");
  Json::Array out;
  for (const Source& parameter : draft.reader.items(list)) convert_parameter(parameter, out, draft);
  draft.spec.set("parameters", std::move(out));
}

}  // namespace fettle::cli
