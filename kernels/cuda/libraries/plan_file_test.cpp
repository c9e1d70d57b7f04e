// The file of timed plans: written plans are read back, and plans timed for something else, or
// never timed, are refused with a message.
#include "kernels/cuda/libraries/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/file.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const GpuKind kH100{"NVIDIA H100 80GB HBM3", "9.0", "13.0", "0.1.0"};
const TimedPlans kPlans{{"cudnn 91900 0 1 2", {"eng43_k24=20", 81.5}},
                        {"cublaslt 130100 matmul 1", {"00ff", 3}}};

class PlanFile : public ::testing::Test {
 protected:
  PlanFile()
      : folder_(::testing::TempDir() + "plan_file_" + std::to_string(getpid()) + "/kernels") {
    ::setenv("FETTLE_KERNEL_CACHE", folder_.c_str(), 1);
  }
  ~PlanFile() override {
    ::unsetenv("FETTLE_KERNEL_CACHE");
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
  }
  static Status keep(const TimedPlans& plans) {
    for (const auto& [key, plan] : plans) {
      FETTLE_ASSIGN(const TimedPlan kept, keep_timed_plan(kH100, key, plan));
      EXPECT_EQ(kept, plan);
    }
    return success();
  }
  // Returns why a file with this text is not used.
  std::string why_not(const std::string& text) {
    EXPECT_TRUE(make_directories(folder_).ok());
    EXPECT_TRUE(write_file(plan_file_path(kH100), text).ok());
    const auto loaded = load_timed_plans(kH100);
    return loaded.ok() ? "it is used" : loaded.error().message;
  }

  const std::string folder_;
};

TEST_F(PlanFile, FindsStoredPlansAgain) {
  const Status kept = keep(kPlans);
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_EQ(plan_file_path(kH100), folder_ + "/nvidia-h100-80gb-hbm3-9-0.json");
  EXPECT_EQ(*load_timed_plans(kH100), kPlans);
}

TEST_F(PlanFile, IsAddedTo) {
  ASSERT_TRUE(keep(kPlans).ok());
  ASSERT_TRUE(keep({{"new", {"eng1", 2}}}).ok());
  TimedPlans all = kPlans;
  all.emplace("new", TimedPlan{"eng1", 2});
  EXPECT_EQ(*load_timed_plans(kH100), all);
}

// As many trials of a Study that start together may do.
TEST_F(PlanFile, TheFirstWriterWinsForAll) {
  constexpr int kWriters = 6, kKeys = 12;
  std::vector<TimedPlans> taken(kWriters);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int key = 0; key < kKeys; ++key) {
        const TimedPlan mine{"of writer " + std::to_string(writer), 1.0 + writer};
        const auto kept = keep_timed_plan(kH100, std::to_string(key), mine);
        ASSERT_TRUE(kept.ok()) << kept.error().message;
        taken[static_cast<std::size_t>(writer)].emplace(std::to_string(key), *kept);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const TimedPlans all = *load_timed_plans(kH100);
  EXPECT_EQ(all.size(), std::size_t{kKeys}) << "no plan is lost";
  for (const TimedPlans& plans : taken) EXPECT_EQ(plans, all);
}

TEST_F(PlanFile, SaysWhereItCannotBeKept) {
  ASSERT_TRUE(make_directories(folder_).ok());
  ASSERT_TRUE(make_directories(plan_file_path(kH100) + ".lock").ok());  // a folder in its place
  const auto kept = keep_timed_plan(kH100, "new", {"eng1", 2});
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().message, HasSubstr(plan_file_path(kH100) + ".lock: "));
}

TEST_F(PlanFile, WithoutAFileNothingIsKnown) { EXPECT_EQ(*load_timed_plans(kH100), TimedPlans{}); }

TEST_F(PlanFile, EachKindOfGpuHasItsOwn) {
  ASSERT_TRUE(keep(kPlans).ok());
  EXPECT_EQ(*load_timed_plans({"NVIDIA A100", "8.0", "13.0", "0.1.0"}), TimedPlans{});
}

TEST_F(PlanFile, OffKeepsNothingAndReadsNothing) {
  ASSERT_TRUE(keep(kPlans).ok());
  ::setenv("FETTLE_KERNEL_CACHE", "off", 1);
  EXPECT_EQ(*load_timed_plans(kH100), TimedPlans{});
  EXPECT_TRUE(keep({{"new", {"eng1", 2}}}).ok());
  ::setenv("FETTLE_KERNEL_CACHE", folder_.c_str(), 1);
  EXPECT_EQ(*load_timed_plans(kH100), kPlans);
}

TEST_F(PlanFile, SaysThatItWasMeasuredForSomethingElse) {
  const auto written_for = [](const GpuKind& device) { return to_json(device, kPlans).dump(); };
  GpuKind other = kH100;
  other.cuda = "12.8";
  EXPECT_THAT(
      why_not(written_for(other)),
      AllOf(HasSubstr(plan_file_path(kH100)), HasSubstr("cuda: found \"12.8\", expected \"13.0\""),
            HasSubstr("plans are timed again, and the file is replaced")));
  other = kH100;
  other.fettle = "0.0.9";
  EXPECT_THAT(why_not(written_for(other)), HasSubstr("fettle: found \"0.0.9\""));
  other = kH100;
  other.name = "nvidia-h100-80gb hbm3";  // gives the same file name
  EXPECT_THAT(why_not(written_for(other)), HasSubstr("device: found \"nvidia-h100-80gb hbm3\""));
}

TEST_F(PlanFile, RefusesMalformedFiles) {
  Json file = to_json(kH100, kPlans);
  EXPECT_THAT(why_not("{\"device\": "), HasSubstr("line 1"));
  EXPECT_THAT(why_not("[]"), HasSubstr("device: found nothing"));
  file.find("plans")->set("key", Json::object({{"plan", "eng1"}}));
  EXPECT_THAT(why_not(file.dump()),
              HasSubstr("expected {\"plan\": text, \"microseconds\": number}"));
  file.find("plans")->set("key", Json::object({{"plan", 3}, {"microseconds", 1.5}}));
  EXPECT_THAT(why_not(file.dump()), HasSubstr("expected {\"plan\": text"));
  file.set("plans", 3);
  EXPECT_THAT(why_not(file.dump()), HasSubstr("plans: expected an object"));
}

}  // namespace
}  // namespace fettle::kernels::cuda
