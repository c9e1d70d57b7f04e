#include "cli/views/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

const Style kPlain = {.color = false, .unicode = true};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Screen, ShowsAStudyInTheMiddle) {
  RunView view = view_in_the_middle();
  view.timeline = {{kStartMs + 14'000, true, "digits-2 failed: exit code 3", {}},
                   {kStartMs + 40'000, false, "digits-3 started: optimizer=adam", {}}};
  view.notice = "stopping";
  EXPECT_EQ(render_screen(view, 80, 40, kPlain),
            R"(digits · running                                                  1m 00s elapsed
██████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  3 of 10 trials, about 36 s left
2 running · 1 completed · 1 stopped early · 1 failed · 0 infeasible

  trial     epoch         accuracy  images/s  time  learning_rate  optimizer
  digits-3  ███▌░░░░ 4/9    0.8712     4,120  20 s          0.002       adam
  digits-4  ░░░░░░░░ 0/9         -         -  20 s          0.002       adam

best  accuracy 0.9012  digits-0 at epoch 9
      learning_rate=0.0123 optimizer=sgd

budget  5 of 10 trials started, 50 s of 2h 00m, 1 of 5 accepted failures

[   14 s] digits-2 failed: exit code 3
[   40 s] digits-3 started: optimizer=adam

stopping
)");
}

TEST(Screen, CountsTokensWhereTrialsReadText) {
  RunView view = view_in_the_middle();
  for (api::TrialPtr& trial : view.trials) {
    if (!trial->status.report) continue;
    api::Trial of_text = *trial;
    of_text.status.report->metrics.erase("images_per_second");
    of_text.status.report->metrics["tokens_per_second"] = 88204.6;
    trial = std::make_shared<api::Trial>(std::move(of_text));
  }
  const std::string screen = render_screen(view, 80, 40, kPlain);
  EXPECT_NE(screen.find("accuracy  tokens/s  time"), std::string::npos) << screen;
  EXPECT_NE(screen.find("  88,205  20 s"), std::string::npos) << screen;
  EXPECT_EQ(screen.find("images/s"), std::string::npos) << screen;
}

TEST(Screen, ListsTheParetoFront) {
  RunView view = view_in_the_middle();
  view.study.spec.objectives.push_back({"latency", api::Direction::kMinimize, {}, {}});
  api::BestTrial best = view.study.status.best.front();
  best.objectives = {0.9, 20};
  view.study.status.best.assign(10, best);
  view.study.status.hypervolume = 3.25;
  const std::string text = render_screen(view, 80, 60, kPlain);
  EXPECT_NE(text.find(R"(
front  10 trials, hypervolume 3.25
      digits-0  accuracy 0.9, latency 20
)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n      and 2 more\n"), std::string::npos);
}

// At every size, no line is too long and no frame too high.
TEST(Screen, FitsEverySize) {
  RunView view = view_in_the_middle();
  for (int i = 0; i < 20; ++i) view.trials.push_back(view.trials[3]);
  view.timeline.assign(30, {kStartMs, false, std::string(200, 'x'), {}});
  view.notice = "stopping";
  for (const int columns : {1, 10, 20, 40, 80, 200}) {
    for (const int rows : {1, 2, 5, 8, 12, 24, 60}) {
      const auto lines = lines_of(render_screen(view, columns, rows, kPlain));
      EXPECT_LE(lines.size(), static_cast<std::size_t>(rows)) << columns << "x" << rows;
      for (const std::string& line : lines) EXPECT_LE(display_width(line), columns) << line;
    }
  }
}

TEST(Screen, KeepsTheNoticeWhereThereIsRoomForLittle) {
  RunView view = view_in_the_middle();
  view.notice = "stopping";
  const auto lines = lines_of(render_screen(view, 80, 8, kPlain));
  EXPECT_EQ(lines.back(), "stopping");
}

TEST(Screen, SaysHowManyRunningTrialsItLeavesOut) {
  RunView view = view_in_the_middle();
  for (int i = 0; i < 50; ++i) view.trials.push_back(view.trials[3]);
  const std::string screen = render_screen(view, 80, 24, kPlain);
  EXPECT_NE(screen.find(" more\n"), std::string::npos) << screen;
}

TEST(Screen, StaysAsciiWithoutUnicode) {
  const std::string screen = render_screen(view_in_the_middle(), 80, 40, {false, false});
  EXPECT_TRUE(std::ranges::all_of(screen, [](char c) { return c > 0; })) << screen;
}

TEST(Screen, TellsAnInterruptedStudyFromARunningOne) {
  RunView view = view_in_the_middle();
  view.interrupted = true;
  const std::string title = lines_of(render_screen(view, 40, 40, kPlain))[0];
  EXPECT_EQ(title.rfind("digits · interrupted", 0), 0U) << title;
  const std::string screen = render_screen(view, 80, kAllRows, kPlain);
  EXPECT_EQ(screen.find(" running"), std::string::npos) << screen;
  EXPECT_NE(screen.find("2 cut off"), std::string::npos) << screen;
}

TEST(Screen, KeepsLinesShortWhereThereIsNoWidth) {
  EXPECT_LT(render_screen(view_in_the_middle(), kAnyWidth, kAllRows, kPlain).size(), 2000U);
}

TEST(Screen, ShowsAStudyThatHasNotBegun) {
  RunView view;
  view.study = view_in_the_middle().study;
  view.study.status = {};
  const std::string screen = render_screen(view, 80, 24, kPlain);
  EXPECT_NE(screen.find("digits · waiting"), std::string::npos) << screen;
  EXPECT_NE(screen.find("0 of 10 trials"), std::string::npos) << screen;
}

}  // namespace
}  // namespace fettle::cli
