// The parts of convert_katib(): each converts one field of the Experiment's spec into fields of the
// Study's spec. Called in the order in which they stand here. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/convert/katib.h"
#include "cli/convert/source_reader.h"

namespace fettle::cli {

// A path in the words of the program that has another meaning under Fettle.
struct Redirect {
  std::string path;  // without a '/' at its end
  std::string to;
  Source source;
  std::string target;
  std::string done;    // the note if a word of the program names the path, and so is changed
  std::string missed;  // the note if none does
};

// Results of one part that later parts need.
struct KatibDraft {
  explicit KatibDraft(const KatibOptions& asked) : options(asked) {}

  const KatibOptions& options;
  SourceReader reader;
  Json spec = Json::object();
  Json trial = Json::object();                    // spec.trial, without its template
  std::string metadata_namespace;                 // "" = none
  std::map<std::string, std::string> parameters;  // Katib's name -> the Study's
  std::string resource;   // hyperband: Katib's name of the parameter that counts steps
  bool by_skopt = false;  // the library that Katib searches with
  std::vector<Redirect> redirects;
};

// katib_objective.cpp
void convert_objective(const Source& spec, KatibDraft& draft);
void convert_budget(const Source& spec, KatibDraft& draft);
// katib_space.cpp; needs what look_at_algorithm() finds
void convert_parameters(const Source& spec, KatibDraft& draft);
// katib_algorithm.cpp; the first comes before the parameters, the others after the budget.
void look_at_algorithm(const Source& spec, KatibDraft& draft);
void convert_algorithm(const Source& spec, KatibDraft& draft);
void convert_early_stopping(const Source& spec, KatibDraft& draft);
// katib_metrics.cpp
void convert_collector(const Source& spec, KatibDraft& draft);
// katib_template.cpp
void convert_template(const Source& spec, KatibDraft& draft);

// The pods of a trial, as one of Katib's kinds of trial describes them.
struct KatibPods {
  Source pod_template;  // the template, or the place that `built` was made of
  Json built;           // a template that was put together; null: none
  std::int64_t workers = 1;
};

// katib_kinds.cpp: absent after an error. `container` names one that is made; "" = any name.
std::optional<KatibPods> convert_kind(const Source& job, const std::string& container,
                                      KatibDraft& draft);

// Settings of an algorithm: a list of name and value.
std::map<std::string, Source> settings_of(const Source& algorithm, SourceReader& reader);

}  // namespace fettle::cli
