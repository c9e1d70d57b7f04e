#include "cli/views/replicates.h"

#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

std::string further_runs(std::int64_t runs) { return plural(runs, "further run"); }

std::string results_text(const api::ReplicateResults& results) {
  if (results.runs == 0) {
    return results.failed == 1 ? "the only further run failed"
                               : "all " + further_runs(results.failed) + " failed";
  }
  std::string text = results.mean ? format_number(*results.mean) : "no finite mean";
  if (results.deviation) text += " ± " + format_number(*results.deviation);
  text += " in " + further_runs(results.runs);
  if (results.failed > 0) text += ", " + format_count(results.failed) + " more failed";
  return text;
}

}  // namespace

std::string repeats_text(const api::Trial& trial) {
  const std::string& repeated = trial.spec.search.replicates;
  return repeated.empty() ? "" : "repeats " + printable(repeated);
}

std::string replicates_text(const api::BestTrial& best) {
  if (!best.replicates || best.objectives.empty()) return "";
  return format_number(best.objectives.front()) + " measured; " + results_text(*best.replicates);
}

Json replicates_json(const api::ReplicateResults& results) {
  return Json::object({{"runs", results.runs},
                       {"mean", results.mean},
                       {"deviation", results.deviation},
                       {"failed", results.failed}});
}

}  // namespace fettle::cli
