// The variables that every trial sees, from the trial file alone.
#include "runtime/trial_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::runtime {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

api::TrialFile file_of_trial() {
  api::TrialFile file;
  file.study = "digits";
  file.trial = "digits-4";
  file.until_step = 3;
  file.checkpoints.directory = "/checkpoints/uid/digits-4";
  return file;
}

TEST(TrialVariables, ATrialWithoutAParentHasEmptyVariables) {
  EXPECT_THAT(
      trial_variables(file_of_trial(), "/run/trial.json").value(),
      ElementsAre(FieldsAre("FETTLE_TRIAL", "/run/trial.json"), FieldsAre("FETTLE_STUDY", "digits"),
                  FieldsAre("FETTLE_TRIAL_NAME", "digits-4"), FieldsAre("FETTLE_UNTIL_STEP", "3"),
                  FieldsAre("FETTLE_CHECKPOINTS", "/checkpoints/uid/digits-4"),
                  FieldsAre("FETTLE_PARENT", ""), FieldsAre("FETTLE_PARENT_STEP", "")));
}

TEST(TrialVariables, AChildFindsTheCheckpointOfItsParent) {
  api::TrialFile file = file_of_trial();
  file.parent = {"/checkpoints/uid/digits-1", 2};
  EXPECT_THAT(trial_variables(file, "").value(),
              IsSupersetOf({testing::Pair("FETTLE_PARENT", "/checkpoints/uid/digits-1"),
                            testing::Pair("FETTLE_PARENT_STEP", "2")}));
}

TEST(TrialVariables, ParametersAreTheirPlainText) {
  api::TrialFile file = file_of_trial();
  file.parameters = Json::object({{"learning-rate", 0.001}, {"name", "a$b"}, {"on", true}});
  EXPECT_THAT(trial_variables(file, "").value(),
              IsSupersetOf({testing::Pair("FETTLE_PARAM_LEARNING_RATE", "0.001"),
                            testing::Pair("FETTLE_PARAM_NAME", "a$b"),
                            testing::Pair("FETTLE_PARAM_ON", "true")}));
}

TEST(TrialVariables, ANulCharacterIsRefused) {
  api::TrialFile file = file_of_trial();
  file.parameters = Json::object({{"x", std::string("a\0b", 3)}});
  EXPECT_THAT(trial_variables(file, "").error().message,
              HasSubstr("the value of parameter x holds a NUL character"));
}

}  // namespace
}  // namespace fettle::runtime
