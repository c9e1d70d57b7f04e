// Tuning, with a timer that says what the tests want.
#include "trainer/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace fettle::trainer {
namespace {

using kernels::cuda::LaunchConfig;
using kernels::cuda::LaunchConfigs;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// 100 µs whatever it is asked for, but for what `times` says.
class FakeTimer final : public kernels::KernelTimer {
 public:
  using Time = std::function<double(int call)>;

  const kernels::cuda::GpuKind& device() const override { return device_; }
  Result<double> microseconds(std::string_view kernel, const LaunchConfig& config,
                              std::int64_t) override {
    const std::string key = std::string(kernel) + " " + kernels::cuda::to_text(config);
    const auto found = times.find(key);
    return found == times.end() ? 100.0 : found->second(calls_[key]++);
  }

  std::map<std::string, Time> times;

 private:
  const kernels::cuda::GpuKind device_{"Test GPU", "9.0", "13.0", "0.1.0"};
  std::map<std::string, int> calls_;
};

FakeTimer::Time always(double time) {
  return [time](int) { return time; };
}

LaunchConfigs tuned(FakeTimer& timer) {
  return tune_kernels(timer, 1000, [](const std::string&) {})->configs();
}

TEST(Tune, KeepsTheFastestOfEachKernel) {
  FakeTimer timer;
  timer.times = {{"optimizer/update 512 x 4", always(80)},
                 {"optimizer/update 64 x 2", always(90)},
                 {"relu/forward 512", always(50)}};
  EXPECT_EQ(tuned(timer),
            (LaunchConfigs{{"optimizer/update", {512, 4}}, {"relu/forward", {512, 0}}}));
}

TEST(Tune, StaysWithTheUsualOneForLittle) {
  FakeTimer timer;
  timer.times = {{"relu/forward 512", always(99)}};
  EXPECT_EQ(tuned(timer), LaunchConfigs{});
}

TEST(Tune, LuckIsNotSpeed) {
  FakeTimer timer;
  timer.times = {{"relu/forward 512", [](int call) { return call == 0 ? 50.0 : 100.0; }}};
  EXPECT_EQ(tuned(timer), LaunchConfigs{});
}

TEST(Tune, ShowsATableAndHowFarItIs) {
  FakeTimer timer;
  timer.times = {{"optimizer/update 512 x 4", always(80)}};
  std::vector<std::string> lines;
  const auto tuning =
      tune_kernels(timer, 1000, [&](const std::string& line) { lines.push_back(line); });
  ASSERT_TRUE(tuning.ok());
  EXPECT_EQ(lines.size(), kernels::cuda::tunable_kernels().size());
  EXPECT_THAT(lines.front(), HasSubstr("1 of 19: add/add, 4 configurations"));
  const std::string text = to_text(*tuning);
  EXPECT_THAT(text, AllOf(HasSubstr("Test GPU, 1000 elements"),
                          ContainsRegex("kernel +default µs +best µs +threads x blocks +gain")));
  EXPECT_THAT(text, ContainsRegex("optimizer/update +100.0 +80.0 +512 x 4 +20.0 %"));
  EXPECT_THAT(text, ContainsRegex("relu/forward +100.0 +100.0 +256 +-"));
  const Json json = to_json(*tuning);
  EXPECT_EQ(*json.find("times")->find("optimizer/update")->find("best_microseconds"), Json(80));
  EXPECT_EQ(*json.find("kernels")->find("optimizer/update")->find("threads"), Json(512));
}

// ---- One kernel --------------------------------------------------------------------------------

class TimeKernel : public testing::Test {
 protected:
  TimeKernel() : folder_(testing::TempDir() + "tune_" + std::to_string(getpid())) {
    setenv("FETTLE_KERNEL_CACHE", folder_.c_str(), 1);
  }
  ~TimeKernel() override {
    unsetenv("FETTLE_KERNEL_CACHE");
    std::filesystem::remove_all(folder_);
  }
  std::string why_not(const TimedLaunch& launch) {
    const auto line = time_kernel(timer_, launch);
    return line.ok() ? "" : line.error().message;
  }

  const std::string folder_;
  FakeTimer timer_;
};

TEST_F(TimeKernel, IsALineForAStudy) {
  timer_.times = {{"optimizer/update 96 x 3", always(12.5)}};
  const auto line = time_kernel(timer_, {"optimizer/update", 96, 3, 1000});
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->dump(), R"({"microseconds":12.5,"kernel":"optimizer/update","threads":96,)"
                          R"("blocks_per_multiprocessor":3,"elements":1000,"device":"Test GPU"})");
}

TEST_F(TimeKernel, WhatIsLeftOutIsUsual) {
  const auto line = time_kernel(timer_, {.kernel = "relu/forward"});
  EXPECT_EQ(*line->find("threads"), Json(256));
  EXPECT_EQ(line->find("blocks_per_multiprocessor"), nullptr);
}

TEST_F(TimeKernel, SaysWhatIsWrong) {
  EXPECT_THAT(why_not({"relu/sideways"}), HasSubstr("there is no kernel \"relu/sideways\""));
  EXPECT_THAT(why_not({"relu/forward", 100}), HasSubstr("a multiple of 32 up to 512"));
  EXPECT_THAT(why_not({"relu/forward", 64, 2}), HasSubstr("takes no number of blocks"));
  EXPECT_THAT(why_not({"relu/forward", std::int64_t{1} << 32}),
              HasSubstr("--threads is 4294967296"));
}

TEST_F(TimeKernel, KeepsOneBesideTheOthers) {
  ASSERT_EQ(why_not({"optimizer/update", 96, 3, 1000, true}), "");
  ASSERT_EQ(why_not({"relu/forward", 128, {}, 1000, true}), "");
  ASSERT_EQ(why_not({"gelu/forward", 128, {}, 1000, false}), "");
  EXPECT_EQ(*kernels::cuda::load_launch_configs(timer_.device()),
            (LaunchConfigs{{"optimizer/update", {96, 3}}, {"relu/forward", {128, 0}}}));
}

}  // namespace
}  // namespace fettle::trainer
