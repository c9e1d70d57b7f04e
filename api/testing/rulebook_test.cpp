// The rulebook on the core's writes: changes of a Trial that an API server accepts. tests/schema
// shows that a real one agrees.
#include "api/testing/rulebook.h"

#include <gtest/gtest.h>

#include "api/fields/field_errors.h"
#include "api/study/changes.h"
#include "api/trial/trial.h"
#include "api/trial/trial_json.h"

namespace fettle::api {
namespace {

Json document(const TrialSpec& spec) {
  Trial trial;
  trial.metadata.name = "digits-3";
  trial.spec = spec;
  return write_trial(trial);
}

TrialSpec spec() {
  TrialSpec out;
  out.study = "digits";
  out.index = 3;
  out.parameters = Json::object({{"x", 0.5}});
  out.until_step = 3;
  out.search.promotions = {{.basis = 4, .until_step = 3}};
  return out;
}

std::string verdict(const TrialSpec& after) {
  return to_string(errors_of_write(document(spec()), document(after)));
}

TEST(Rulebook, APromotionIsTaken) {
  TrialSpec promoted = spec();
  promoted.until_step = 9;
  promoted.search.rung = 2;
  promoted.search.promotions.push_back({.basis = 7, .until_step = 9});
  EXPECT_EQ(verdict(promoted), "");
}

TEST(Rulebook, StoppingSuspendingAndResizingAreTaken) {
  TrialSpec changed = spec();
  changed.stop = Stop{"GoalReached", "so", 5};
  changed.suspend = true;
  changed.workers = 2;
  EXPECT_EQ(verdict(changed), "");
}

TEST(Rulebook, PromotionsAreOnlyAppendedTo) {
  TrialSpec fewer = spec();
  fewer.search.promotions.clear();
  EXPECT_EQ(verdict(fewer), "spec.search.promotions: may only be appended to");
  TrialSpec other = spec();
  other.search.promotions = {{.basis = 7, .until_step = 9}, spec().search.promotions[0]};
  EXPECT_EQ(verdict(other), "spec.search.promotions: may only be appended to");
}

TEST(Rulebook, InputsOfResultsDoNotChange) {
  TrialSpec less = spec();
  less.until_step = 2;
  EXPECT_EQ(verdict(less), "spec.untilStep: may only grow");
  for (const auto& change : std::vector<void (*)(TrialSpec&)>{
           [](TrialSpec& s) {
             s.parameters = Json::object({{"x", 0.6}});
           },
           [](TrialSpec& s) { s.seed = 9; },
           [](TrialSpec& s) { s.index = 4; },
           [](TrialSpec& s) {
             s.parent = Parent{"digits-1", 3};
           },
           [](TrialSpec& s) { s.search.basis = 1; },
           [](TrialSpec& s) { s.search.replaces = "digits-1"; },
           [](TrialSpec& s) { s.search.replicates = "digits-1"; },
       }) {
    TrialSpec changed = spec();
    change(changed);
    EXPECT_NE(verdict(changed).find(kTrialFieldIsFixed), std::string::npos) << verdict(changed);
  }
}

TEST(Rulebook, AnEarlierErrorMayStay) {
  Json before = document(spec());
  before.find("spec")->set("newField", true);
  Json after = before;
  after.find("spec")->set("suspend", true);
  EXPECT_TRUE(errors_of_write(before, after).empty());
  after.find("spec")->set("other", true);
  EXPECT_EQ(errors_of_write(before, after).size(), 1u);
}

TEST(Rulebook, StoredDocumentsHaveTheirDefaults) {
  const Json bare = parse_json(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial",
      "metadata": {"name": "digits-3"}, "spec": {"study": "digits"}})")
                        .value();
  ASSERT_TRUE(errors_of_write(Json(), bare).empty());
  EXPECT_EQ(with_defaults(bare).find("spec")->find("workers")->as_integer(), 1);
}

TEST(Rulebook, BoundsAndUnknownFieldsAreErrors) {
  Json bad = document(spec());
  bad.find("spec")->set("index", 9'000'000'000'000'000);
  bad.find("spec")->set("worker", 2);
  EXPECT_EQ(errors_of_write(Json(), bad).size(), 2u);
}

}  // namespace
}  // namespace fettle::api
