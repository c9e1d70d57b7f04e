// fettle export and fettle import, as far as they need no package of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Workshop& with_a_study(Workshop& shop) {
  shop.write("study.yaml", StudyText{}.yaml());
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  return shop;
}

TEST(Export, WritesOneDocument) {
  Workshop made;
  Workshop& shop = with_a_study(made);
  const Finished printed = shop.fettle({"export"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  const auto document = parse_json(printed.out);
  ASSERT_TRUE(document.ok()) << document.error().message;
  EXPECT_EQ(document->find("name")->as_string(), "digits");
  EXPECT_EQ(document->find("state")->as_string(), "succeeded");
  EXPECT_THAT(document->find("trials")->as_array(), SizeIs(4));
  EXPECT_FALSE(document->find("events")->as_array().empty());
  const Finished written = shop.fettle({"export", "digits", "--output", "digits.json"});
  EXPECT_EQ(written.out, "Wrote digits.json.\n") << written.err;
  EXPECT_THAT(shop.read("digits.json"), HasSubstr(R"("version":1)"));
}

TEST(Export, RefusesWhatDoesNotGoTogether) {
  Workshop made;
  Workshop& shop = with_a_study(made);
  const std::vector<std::pair<std::vector<std::string>, const char*>> lines = {
      {{"digits", "--to", "optuna"}, "needs a target: fettle export digits --to optuna sqlite:"},
      {{"--to", "tensorboard"}, "needs a target: fettle export STUDY --to tensorboard runs"},
      {{"digits", "runs", "--to", "wandb"}, "--to wandb takes no target, but runs is one"},
      {{"digits", "--to", "wandb", "--output", "x"}, "--output goes with --to json only"},
      {{"digits", "--to", "wandb", "--follow"}, "--follow goes with --to mlflow only"},
      {{"digits", "--name", "x"}, "--name does not go with --to json"},
      {{"digit", "--to", "wandb"}, "no study 'digit' in .fettle; there are: digits"},
  };
  for (const auto& [arguments, error] : lines) {
    std::vector<std::string> line = {"export"};
    line.insert(line.end(), arguments.begin(), arguments.end());
    const Finished refused = shop.fettle(line);
    EXPECT_EQ(refused.code, 2) << error;
    EXPECT_THAT(refused.err, HasSubstr(error));
  }
}

TEST(Export, NamesThePackageThatIsLacking) {
  Workshop made;
  Workshop& shop = with_a_study(made);
  const Finished refused = shop.fettle({"export", "sqlite:///x.db", "--to", "optuna"});
  if (refused.code == 0) GTEST_SKIP() << "this Python has Optuna";
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("pip install optuna"));
}

TEST(Import, WritesLinesOfATable) {
  Workshop shop;
  shop.write("old.csv", "lr,optimizer,loss\n0.1,sgd,0.5\n0.01,adam,0.25\n");
  const Finished done =
      shop.fettle({"import", "--from", "csv", "old.csv", "--objective", "loss", "-o", "old.jsonl"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(shop.read("old.jsonl"),
              HasSubstr(R"({"parameters": {"lr": 0.01, "optimizer": "adam"}, )"
                        R"("values": {"loss": 0.25})"));
}

constexpr const char* kOldResult =
    "{\"parameters\": {\"x\": 0.25}, \"values\": {\"value\": 0.5}}\n";

StudyText warm_study() {
  StudyText text;
  text.search += "\n  warmStart: {results: old.jsonl}";
  return text;
}

TEST(Results, BeginAStudyThatThenNeedsNoFile) {
  Workshop shop;
  shop.write("study.yaml", warm_study().yaml());
  shop.write("old.jsonl", kOldResult);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.err;
  const auto document = parse_json(shop.fettle({"export"}).out);
  ASSERT_TRUE(document.ok());
  EXPECT_THAT(document->find("status")->dump(),
              HasSubstr("begins with results of trials: 1 of old.jsonl"));
  shop.write("old.jsonl", "gone\n");
  StudyText longer = warm_study();
  longer.budget = "{trials: 5, parallelism: 2}";
  shop.write("study.yaml", longer.yaml());
  const Finished resumed = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(shop.trials().as_array(), SizeIs(5));
}

// A Study with rungs at steps 1 and 3 of 9. A larger x is better, and five results are known.
void prepare_study_with_rungs(Workshop& shop, const std::string& search) {
  std::string lines;
  for (const char* x : {"0.125", "0.75", "0.5", "0.25", "0.875"}) {
    lines += "{\"parameters\": {\"x\": " + std::string(x) + "}, \"values\": {\"value\": " + x +
             "}, \"step\": 9}\n";
  }
  shop.write("old.jsonl", lines + R"({"parameters": {"x": 1}, "values": {"value": 1}, "step": 3})");
  StudyText text = warm_study();
  text.search = search + text.search.substr(text.search.find('\n'));
  text.budget = "{trials: 9, parallelism: 2}";
  text.script =
      "for s in $(seq 1 $FETTLE_UNTIL_STEP); do "
      "echo '{\"step\": '$s', \"value\": '$FETTLE_PARAM_X'}'; done";
  text.steps = 9;
  shop.write("study.yaml", text.yaml());
}

TEST(Results, GiveASearchWithRungsItsFirstPoints) {
  const std::string stops = "algorithm: {name: gp, seed: 3}\n  earlyStopping: {name: asha}";
  for (const std::string& search :
       {std::string("algorithm: {name: hyperband, seed: 3}"),
        std::string("algorithm: {name: bohb, seed: 3}"), stops,
        std::string("algorithm: {name: tpe}\n  earlyStopping: {name: asha, promote: true}")}) {
    SCOPED_TRACE(search);
    Workshop shop;
    prepare_study_with_rungs(shop, search);
    const Finished done = shop.fettle({"run", "study.yaml"});
    EXPECT_EQ(done.code, 0) << done.err;
    const auto document = parse_json(shop.fettle({"export"}).out);
    ASSERT_TRUE(document.ok());
    EXPECT_THAT(document->find("status")->dump(),
                HasSubstr("begins with results of trials: 5 of old.jsonl (1 ended before step 9)"));
    std::vector<double> points;
    std::set<std::string> phases;
    for (const Json& trial : document->find("trials")->as_array()) {
      points.push_back(trial.find("parameters")->find("x")->as_double());
      phases.insert(trial.find("phase")->as_string());
    }
    ASSERT_THAT(points, SizeIs(9));
    points.resize(3);
    EXPECT_THAT(points, ElementsAre(0.875, 0.75, 0.5));
    EXPECT_THAT(phases, Contains("Completed"));
    // A program as short as this one ends before it can be stopped.
    if (search != stops) {
      EXPECT_THAT(phases, Contains("Paused"));
    }
    EXPECT_THAT(shop.fettle({"replay", "digits"}).out, HasSubstr("all as recorded"));
  }
}

TEST(Results, ABadLineIsNamedBeforeAnythingRuns) {
  Workshop shop;
  shop.write("study.yaml", warm_study().yaml());
  shop.write("old.jsonl", std::string(kOldResult) + "{\"parameters\": {\"x\": 1}}\n");
  for (const char* command : {"validate", "run"}) {
    const Finished refused = shop.fettle({command, "study.yaml"});
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("old.jsonl:2: has no values")) << command;
  }
  EXPECT_TRUE(shop.trials().as_array().empty());
}

}  // namespace
}  // namespace fettle::e2e
