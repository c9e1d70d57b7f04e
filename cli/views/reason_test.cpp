// fettle why: the facts known, the expectation and the result, in words.
#include "cli/views/reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns ten completed trials, accuracy = learning rate, one after the other.
RunView ten_trials() {
  RunView view;
  view.study = view_at_the_end().study;
  view.study.spec.parameters[0].max = 1;
  view.study.spec.algorithm.name = api::AlgorithmKind::kTpe;
  view.study.spec.algorithm.startup_trials = 5;
  for (std::int64_t i = 0; i < 10; ++i) {
    api::Trial trial;
    trial.metadata.name = "digits-" + std::to_string(i);
    trial.spec.index = i;
    trial.spec.until_step = 9;
    trial.spec.search.basis = i;
    const double accuracy = 0.05 + 0.09 * static_cast<double>((i * 7) % 10);
    trial.spec.parameters = Json::object({{"learning_rate", accuracy}, {"optimizer", "sgd"}});
    trial.status.phase = api::TrialPhase::kCompleted;
    trial.status.report.emplace();
    trial.status.report->step = 9;
    trial.status.report->metrics = {{"accuracy", accuracy}};
    trial.status.facts = {{.seq = i + 1, .step = 9, .values = {accuracy}, .at_ms = kStartMs + i}};
    view.trials.push_back(std::make_shared<const api::Trial>(std::move(trial)));
  }
  view.now_ms = kStartMs + 60'000;
  bring_up_to_date(view);
  return view;
}

TEST(Reason, OfAnEarlyTrialIsTheStart) {
  const RunView view = ten_trials();
  const auto reason = reason_of(view, *view.trials[2]);
  ASSERT_TRUE(reason.ok());
  EXPECT_EQ(reason->before.trials, 2);
  EXPECT_EQ(reason->before.ended, 2);
  EXPECT_FALSE(reason->expectation.has_value());
  const std::string text = render_reason(view, *view.trials[2], *reason);
  EXPECT_THAT(text, HasSubstr("digits-2  learning_rate=0.41 optimizer=sgd"));
  EXPECT_THAT(text, HasSubstr("by tpe"));
  EXPECT_THAT(text, HasSubstr("knowing 2 results of 2 trials (basis 2)"));
  EXPECT_THAT(text, HasSubstr("point 3 of a quasi-random start"));
  EXPECT_THAT(text, HasSubstr("expected  nothing yet"));
}

TEST(Reason, OfALaterTrialShowsItsExpectation) {
  const RunView view = ten_trials();
  const auto reason = reason_of(view, *view.trials[9]);
  ASSERT_TRUE(reason.ok());
  ASSERT_TRUE(reason->expectation.has_value());
  EXPECT_EQ(reason->expectation->trials, 9U);
  EXPECT_EQ(reason->before.best, 0.05 + 0.09 * 9);
  ASSERT_TRUE(reason->explanation.has_value());
  EXPECT_TRUE(reason->explanation->acquisition.has_value());
  ASSERT_TRUE(reason->ranking.has_value());
  EXPECT_EQ(reason->ranking->rank, 7);
  EXPECT_EQ(reason->ranking->of, 10);
  const std::string text = render_reason(view, *view.trials[9], *reason);
  EXPECT_THAT(text, HasSubstr("the best until then was accuracy 0.86"));
  EXPECT_THAT(text,
              HasSubstr("came      accuracy 0.32 at epoch 9 of 9 (Completed), number 7 of 10"));
  EXPECT_THAT(text, HasSubstr("the best is digits-7 with accuracy 0.86"));
}

TEST(Reason, OfTheBestSaysSo) {
  const RunView view = ten_trials();
  const auto reason = reason_of(view, *view.trials[7]);
  ASSERT_TRUE(reason.ok());
  EXPECT_THAT(render_reason(view, *view.trials[7], *reason), HasSubstr(", the best of all\n"));
}

TEST(Reason, OfAStopIsTheJudges) {
  const RunView view = view_in_the_middle();
  const auto reason = reason_of(view, *view.trials[1]);
  ASSERT_TRUE(reason.ok());
  const std::string text = render_reason(view, *view.trials[1], *reason);
  EXPECT_THAT(text, HasSubstr("stopped   EarlyStopped: asha: rung 1 (step 3): 0.5 is not among"));
  const Json json = reason_json(view, *view.trials[1], *reason);
  EXPECT_EQ(*json.find("stop")->find("reason"), Json("EarlyStopped"));
}

TEST(Reason, OfAFailureIsPrintable) {
  const RunView view = view_in_the_middle();
  const auto reason = reason_of(view, *view.trials[2]);
  ASSERT_TRUE(reason.ok());
  const std::string text = render_reason(view, *view.trials[2], *reason);
  EXPECT_THAT(text, HasSubstr("failed    exit code 3"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Expectations, RestOnTheHistoryOfTheirTime) {
  const auto expectations = expectations_of(ten_trials());
  EXPECT_EQ(expectations.count(3), 0U);
  for (std::int64_t i = 4; i < 10; ++i) {
    ASSERT_EQ(expectations.count(i), 1U) << i;
    EXPECT_LE(expectations.at(i).trials, static_cast<std::size_t>(i));
  }
}

}  // namespace
}  // namespace fettle::cli
