// The shape of the document is a promise: a test that fails here means a new version, or a new
// member in docs/export.md.
#include "cli/exchange/document.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

// "name string, curve [{step number}]": members with their types, of the first item of a list.
std::string shape_of(const Json& value) {
  if (value.is_array()) {
    return "[" + (value.as_array().empty() ? "" : shape_of(value.as_array().front())) + "]";
  }
  if (!value.is_object()) return std::string(value.type_name());
  std::string text;
  for (const auto& [key, member] : value.as_object()) {
    // Fields of the API, and maps whose keys the Study chooses.
    const bool is_other = key == "spec" || key == "status" || key == "parameters" ||
                          key == "values" || key == "metrics";
    text += (text.empty() ? "" : ", ") + key + ' ' +
            (is_other ? std::string(member.type_name()) : shape_of(member));
  }
  return "{" + text + "}";
}

RunView with_events() {
  RunView view = view_at_the_end();
  TimelineEntry entry;
  entry.data = Json::object({{"event", "Succeeded"},
                             {"timeMs", kStartMs},
                             {"about", "digits"},
                             {"warning", false},
                             {"message", "all trials are done"}});
  view.timeline = {entry};
  return view;
}

TEST(ExportDocument, HasThePromisedMembers) {
  EXPECT_EQ(shape_of(export_document(with_events())),
            "{version number, program string, exportedMs number, name string, namespace string, "
            "uid string, createdMs number, state string, startedMs number, endedMs number, spec "
            "object, status object, trials [{name string, uid string, index number, phase string, "
            "parameters object, values "
            "object, infeasible boolean, step number, startedMs number, endedMs number, seconds "
            "number, message string, curve [{step number, metrics object}], spec object, status "
            "object}], events [{event string, timeMs number, about string, warning boolean, "
            "message string}]}");
  EXPECT_EQ(export_document(with_events()).find("version")->as_integer(), 1);
}

TEST(ExportDocument, SaysHowEachTrialStands) {
  const Json document = export_document(view_in_the_middle());
  EXPECT_EQ(document.find("state")->as_string(), "running");
  const Json::Array& trials = document.find("trials")->as_array();
  ASSERT_EQ(trials.size(), 5U);
  const auto text_of = [&](std::size_t i, const char* member) {
    return trials[i].find(member)->dump();
  };
  EXPECT_EQ(text_of(0, "phase"), R"("Completed")");
  EXPECT_EQ(text_of(0, "values"), R"({"accuracy":0.9012})");
  EXPECT_EQ(text_of(0, "startedMs"), "1700000000100");
  EXPECT_EQ(text_of(0, "endedMs"), "1700000030000");
  EXPECT_EQ(text_of(1, "phase"), R"("Stopped")");
  EXPECT_EQ(text_of(1, "step"), "3");
  EXPECT_EQ(text_of(2, "values"), R"({"accuracy":null})");
  EXPECT_EQ(text_of(2, "curve"), "[]");
  EXPECT_EQ(text_of(3, "endedMs"), "null");
  EXPECT_EQ(text_of(3, "parameters"), R"({"learning_rate":0.002,"optimizer":"adam"})");
}

TEST(ExportDocument, JoinsTheReportToItsHistory) {
  RunView view = view_at_the_end();
  api::Trial trial = *view.trials[0];
  trial.status.report->history = {{3, {{"accuracy", 0.5}}}, {9, {{"accuracy", 0.9012}}}};
  trial.status.report->metrics = {{"accuracy", 0.9012}, {"loss", 0.25}};
  view.trials = {std::make_shared<const api::Trial>(trial)};
  EXPECT_EQ(export_document(view).find("trials")->as_array()[0].find("curve")->dump(),
            R"([{"step":3,"metrics":{"accuracy":0.5}},)"
            R"({"step":9,"metrics":{"accuracy":0.9012,"loss":0.25}}])");
}

}  // namespace
}  // namespace fettle::cli
