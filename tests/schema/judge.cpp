// fettle-judge: what api/ makes of documents, for comparison with the API server (schema_test.py).
//
//   fettle-judge < DOCUMENTS     a JSON value a line: a Study, a Trial, or {"before", "after"}: two
//                                Studies. Answers each with a line {"errors": [{"path",
//                                "message"}], "read": the document with all defaults}.
//   fettle-judge random COUNT    so many random Studies and Trials, one a line
#include <cstdlib>
#include <iostream>
#include <string>

#include "api/changes.h"
#include "api/field_reader.h"
#include "api/random_documents.h"
#include "api/report.h"
#include "api/study_json.h"
#include "api/trial_fields.h"
#include "api/trial_json.h"

namespace fettle {
namespace {

Json answer(const std::vector<api::FieldError>& errors, Json read) {
  Json list = Json::array();
  for (const api::FieldError& error : errors) {
    list.push_back(Json::object({{"path", error.path}, {"message", error.message}}));
  }
  return Json::object({{"errors", std::move(list)}, {"read", std::move(read)}});
}

Json judge_study(const Json& document) {
  const api::ReadStudy read = api::read_study(document);
  return answer(read.errors, read.errors.empty() ? api::write_study(read.study) : Json());
}

Json judge_trial(const Json& document) {
  api::Trial trial;
  api::FieldErrors errors;
  api::read_struct(document, api::FieldPath(), trial, errors);
  if (errors.empty() && trial.status.report) {
    const Status fits = api::check_history_values(*trial.status.report);
    if (!fits.ok()) errors.add(api::FieldPath("status.report.history"), fits.error().message);
  }
  const bool fits = errors.empty();
  return answer(std::move(errors).take(), fits ? api::write_trial(trial) : Json());
}

Json judge_change(const Json& before, const Json& after) {
  const api::ReadStudy old_study = api::read_study(before);
  const api::ReadStudy new_study = api::read_study(after);
  if (!new_study.errors.empty()) return judge_study(after);
  return answer(api::forbidden_changes(old_study.study.spec, new_study.study.spec),
                api::write_study(new_study.study));
}

Json judge(const Json& line) {
  const Json* before = line.find("before");
  const Json* after = line.find("after");
  if (before != nullptr && after != nullptr) return judge_change(*before, *after);
  const Json* kind = line.find("kind");
  return kind != nullptr && *kind == Json("Trial") ? judge_trial(line) : judge_study(line);
}

int judge_all() {
  for (std::string line; std::getline(std::cin, line);) {
    const Result<Json> document = parse_json(line);
    if (!document) {
      std::cerr << "fettle-judge: " << document.error().message << '\n';
      return 2;
    }
    std::cout << judge(*document).dump() << '\n';
  }
  return 0;
}

int print_random(int count) {
  for (int seed = 0; seed < count; ++seed) {
    api::RandomDocuments random(static_cast<std::uint64_t>(seed));
    std::cout << api::write_study(random.study()).dump() << '\n'
              << api::write_trial(random.trial()).dump() << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace fettle

int main(int argc, char** argv) {
  if (argc == 1) return fettle::judge_all();
  if (argc == 3 && std::string(argv[1]) == "random")
    return fettle::print_random(std::atoi(argv[2]));
  std::cerr << "usage: fettle-judge [random COUNT]\n";
  return 2;
}
