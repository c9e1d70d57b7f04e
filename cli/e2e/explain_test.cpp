// fettle report, why and replay on studies that really ran.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

// Twelve trials of three steps; bad trials are stopped early, if a decision takes at most `pause`
// seconds.
std::string stopped_study(const std::string& algorithm = "tpe", const std::string& pause = "0.05") {
  StudyText text;
  text.script =
      "for s in 1 2 3; do echo \"{\\\"step\\\": $s, \\\"value\\\": $FETTLE_PARAM_X}\"; "
      "sleep " +
      pause + "; done";
  text.budget = "{trials: 12, parallelism: 3}";
  text.steps = 3;
  text.search = "algorithm: {name: " + algorithm +
                ", startupTrials: 4, seed: 3}\n"
                "  earlyStopping: {name: asha, reductionFactor: 3}";
  return text.yaml();
}

class Explain : public testing::Test {
 protected:
  void run(const std::string& yaml) {
    shop.write("study.yaml", yaml);
    const Finished done = shop.fettle({"run", "study.yaml"});
    ASSERT_EQ(done.code, 0) << done.out << done.err;
  }
  Workshop shop;
};

TEST_F(Explain, ReportIsOneFile) {
  run(stopped_study());
  const Finished done = shop.fettle({"report", "digits", "-o", "page.html"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "Wrote page.html.\n");
  const std::string page = shop.read("page.html");
  EXPECT_THAT(page, HasSubstr("<title>digits</title>"));
  EXPECT_THAT(page, HasSubstr("\"digits-11\""));
  EXPECT_THAT(page, HasSubstr("\"importance\":["));
  EXPECT_EQ(shop.fettle({"report", "digits"}).out, "Wrote digits.html.\n");
  EXPECT_THAT(shop.fettle({"report", "digits", "-o", "-"}).out,
              testing::StartsWith("<!doctype html>"));
}

TEST_F(Explain, ReportHasLogsUnlessTheyAreLeftOut) {
  StudyText text;
  text.budget = "{trials: 1}";
  text.script = "echo password 1234; " + text.script;
  run(text.yaml());
  EXPECT_THAT(shop.fettle({"report", "-o", "-"}).out, HasSubstr("password 1234\\n"));
  const std::string page = shop.fettle({"report", "--no-logs", "-o", "-"}).out;
  EXPECT_THAT(page, Not(HasSubstr("password 1234")));
  EXPECT_THAT(page, HasSubstr("\"why\":\"digits-0 "));
}

TEST_F(Explain, ReportOfValuesThatWouldBeMarkup) {
  StudyText text;
  text.budget = "{trials: 1}";
  std::string yaml = text.yaml();
  const std::string from = "{name: x, type: Double, min: 0, max: 1}";
  yaml.replace(yaml.find(from), from.size(),
               R"({name: x, type: Categorical, values: ["</script><b id=broken>"]})");
  run(yaml);
  const std::string page = shop.fettle({"report", "digits", "-o", "-"}).out;
  EXPECT_THAT(page, Not(HasSubstr("<b id=broken>")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb id=broken>"));
}

TEST_F(Explain, ReportOfAStudyWithoutTrials) {
  shop.write("study.yaml", StudyText{}.yaml() + "  suspend: true\n");
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 130);
  const Finished done = shop.fettle({"report", "digits"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(shop.read("digits.html"), HasSubstr("\"trials\":[]"));
}

TEST_F(Explain, ReportExplainsItsErrors) {
  run(StudyText{}.yaml());
  const Finished none = shop.fettle({"report", "digit"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no study 'digit' in .fettle; there are: digits"));
  const Finished nowhere = shop.fettle({"report", "digits", "-o", "no/such/place.html"});
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("no/such/place.html"));
}

TEST_F(Explain, WhyTellsOfATrial) {
  run(stopped_study());
  const Finished done = shop.fettle({"why", "digits-11"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("chosen    by tpe"));
  EXPECT_THAT(done.out, HasSubstr("expected  value "));
  EXPECT_THAT(done.out, HasSubstr("came      value "));
  const Finished json = shop.fettle({"why", "digits-11", "--output", "json"});
  const auto parsed = parse_json(json.out);
  ASSERT_TRUE(parsed.ok()) << json.out;
  EXPECT_TRUE(parsed->find("expected")->find("mean")->is_number());
}

TEST_F(Explain, WhyShowsTheExpectationOfAGaussianProcess) {
  run(stopped_study("gp"));
  const Finished done = shop.fettle({"why", "digits-11"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("chosen    by gp"));
  EXPECT_THAT(done.out, HasSubstr("logarithm of the expected improvement"));
  EXPECT_THAT(done.out, HasSubstr("; its model expected "));
  EXPECT_THAT(shop.fettle({"why", "digits-0"}).out, HasSubstr("quasi-random start"));
  EXPECT_THAT(shop.fettle({"replay", "digits"}).out, HasSubstr("all as recorded"));
}

TEST_F(Explain, AutoStopsTrialsWhereTimeIsLimited) {
  std::string yaml = stopped_study("tpe", "0.5");
  const auto replace = [&yaml](const std::string& from, const std::string& to) {
    yaml.replace(yaml.find(from), from.size(), to);
  };
  replace("name: tpe, startupTrials: 4", "name: auto");
  replace("{trials: 12, parallelism: 3}", "{trials: 26, parallelism: 8, wallTime: 1h}");
  replace("  earlyStopping: {name: asha, reductionFactor: 3}\n", "");
  run(yaml);
  EXPECT_GT(shop.count_phase("Stopped"), 4U);
  EXPECT_THAT(shop.fettle({"why", "digits-25"}).out, HasSubstr("; asha stops poor trials"));
  EXPECT_THAT(shop.fettle({"replay", "digits"}).out, HasSubstr("all as recorded"));
}

// Trials take a tenth to half a second, by x. Their time is a fact: replay repeats the same
// decisions from it, and `why` mentions it.
TEST_F(Explain, CostsOfTrialsAreRecordedAndPredicted) {
  StudyText text;
  text.script = "sleep 0.$((1 + $(printf '%.0f' ${FETTLE_PARAM_X}) * 4)); echo '{\"value\": 1}'";
  text.budget = "{trials: 8, parallelism: 2}";
  std::string yaml = text.yaml();
  const std::string from = "name: random";
  yaml.replace(yaml.find(from), from.size(), "name: gp, startupTrials: 4, costAware: true");
  const auto began = std::chrono::steady_clock::now();
  run(yaml);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  const Finished again = shop.fettle({"replay", "digits"});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  const Finished why = shop.fettle({"why", "digits-6"});
  EXPECT_THAT(why.out, HasSubstr("times the logarithm of the predicted cost"));
  EXPECT_THAT(why.out, testing::ContainsRegex("predicted cost: [0-9.]+ worker-seconds"));
  EXPECT_THAT(why.out, testing::ContainsRegex(" for [0-9.]+ worker-seconds"));
  const auto json = parse_json(shop.fettle({"why", "digits-6", "--output", "json"}).out);
  ASSERT_TRUE(json.ok());
  const double cost = json->find("cost")->as_double();
  EXPECT_GT(cost, 0.05);
  EXPECT_LT(cost, passed.count());
  EXPECT_GT(json->find("explanation")->find("cost")->as_double(), 0);
}

TEST_F(Explain, WhyExplainsItsErrors) {
  run(StudyText{}.yaml());
  EXPECT_THAT(shop.fettle({"why", "digits-9"}).err, HasSubstr("has 4 trials and none is called"));
  EXPECT_THAT(shop.fettle({"why", "digits"}).err, HasSubstr("'digits' is no trial"));
  EXPECT_EQ(shop.fettle({"why", "letters-0"}).code, 2);
}

TEST_F(Explain, ReplayAgreesWithTheDecisions) {
  run(stopped_study());
  const Finished done = shop.fettle({"replay", "digits"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("digits: 12 suggestions and "));
  EXPECT_THAT(done.out, HasSubstr("all as recorded"));
}

TEST_F(Explain, ReplayAsksWhatIf) {
  run(stopped_study());
  const Finished rules = shop.fettle({"replay", "digits", "--early-stopping", "median"});
  EXPECT_EQ(rules.code, 0) << rules.err;
  EXPECT_THAT(rules.out, HasSubstr("median would have stopped "));
  EXPECT_THAT(rules.out, HasSubstr("The best trial, digits-"));
  const Finished points = shop.fettle({"replay", "digits", "--algorithm", "sobol"});
  EXPECT_EQ(points.code, 0) << points.err;
  EXPECT_THAT(points.out, HasSubstr("sobol would have suggested, of 12 points, "));
  EXPECT_THAT(points.out, HasSubstr("digits-11"));
}

TEST_F(Explain, ReplayExplainsItsErrors) {
  run(StudyText{}.yaml());
  const Finished algorithm = shop.fettle({"replay", "digits", "--algorithm", "sobel"});
  EXPECT_EQ(algorithm.code, 2);
  EXPECT_THAT(algorithm.err, HasSubstr("spec.algorithm.name"));
  EXPECT_THAT(algorithm.err, HasSubstr("sobol"));
  const Finished one_step = shop.fettle({"replay", "digits", "--early-stopping", "asha"});
  EXPECT_EQ(one_step.code, 2);
  EXPECT_THAT(one_step.err, HasSubstr("resource"));
}

}  // namespace
}  // namespace fettle::e2e
