#include "cli/exchange/results_file.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/exchange/known_results.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

void set_known(std::vector<Json> known, api::Study& study, Json& document) {
  document.find("spec")->find("warmStart")->set("known", Json(Json::Array(known)));
  study.spec.warm_start->known = std::move(known);
}

}  // namespace

Result<std::string> read_results(const std::string& folder, api::Study& study, Json& document) {
  if (!study.spec.warm_start || study.spec.warm_start->results.empty()) return std::string();
  const std::string& name = study.spec.warm_start->results;
  const std::string field = "spec.warmStart.results: ";
  if (!study.spec.warm_start->known.empty()) {
    return invalid(field +
                   "found beside known, into which the file is read: remove one of the two");
  }
  // An absolute path stays as it is.
  const auto text = read_file((std::filesystem::path(folder) / name).string());
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) {
    return invalid(
        field + text.error().message +
        "; the path is relative to the Study's file, and fettle import writes such files");
  }
  if (!text.ok()) return Error{text.error()}.in("spec.warmStart.results");
  FETTLE_ASSIGN(KnownFile file, read_known_file(*text, printable(name), study.spec.objectives));
  const std::size_t kept = file.known.size();
  set_known(std::move(file.known), study, document);
  if (kept == file.results) return std::string();
  return name + " has " + format_count(static_cast<std::int64_t>(file.results)) +
         " results; the best and the last " + std::to_string(kept) + " are used";
}

bool keep_results(const api::Study& stored, api::Study& study, Json& document) {
  const auto& before = stored.spec.warm_start;
  if (!before || !study.spec.warm_start || before->known.empty()) return false;
  if (before->results.empty() || before->results != study.spec.warm_start->results) return false;
  set_known(before->known, study, document);
  return true;
}

}  // namespace fettle::cli
