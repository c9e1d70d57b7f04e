// fettle-judge: the verdict of api/ on documents, for comparison with the API server
// (schema_test.py).
//
//   fettle-judge < DOCUMENTS     a JSON value a line: a Study, a Trial, or {"before", "after"}: two
//                                of either. Answers each with a line {"errors": [{"path",
//                                "message"}], "read": the document with all defaults}.
//   fettle-judge random COUNT    COUNT random Studies and Trials, one a line
#include <cstdlib>
#include <iostream>
#include <string>

#include "api/study/study_json.h"
#include "api/testing/random_documents.h"
#include "api/testing/rulebook.h"
#include "api/trial/trial_json.h"

namespace fettle {
namespace {

Json judge(const Json& line) {
  const Json* before = line.find("before");
  const Json* after = line.find("after");
  const bool is_change = before != nullptr && after != nullptr;
  const Json& document = is_change ? *after : line;
  const auto errors = api::errors_of_write(is_change ? *before : Json(), document);
  Json list = Json::array();
  for (const api::FieldError& error : errors) {
    list.push_back(Json::object({{"path", error.path}, {"message", error.message}}));
  }
  Json read = errors.empty() ? api::with_defaults(document) : Json();
  return Json::object({{"errors", std::move(list)}, {"read", std::move(read)}});
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
