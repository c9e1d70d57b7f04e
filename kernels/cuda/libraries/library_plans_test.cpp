// The plans of libraries that a device runs, over processes that share a file, and their timing. On
// the emulator, whose machine the tests choose.
#include "kernels/cuda/libraries/library_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <thread>
#include <vector>

#include "base/file.h"
#include "kernels/cuda/libraries/plan_timer.h"
#include "kernels/cuda/testing/on_machine.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A device and its plans, as a backend opens them.
struct Opened {
  const std::unique_ptr<Device> device = std::move(Device::open()).value();
  LibraryPlans plans{*device};
};

class LibraryPlansTest : public ::testing::Test {
 protected:
  LibraryPlansTest()
      : folder_(::testing::TempDir() + "device_plans_" + std::to_string(::getpid())) {
    ::setenv("FETTLE_KERNEL_CACHE", folder_.c_str(), 1);
  }
  ~LibraryPlansTest() override {
    ::unsetenv("FETTLE_KERNEL_CACHE");
    ::unsetenv("FETTLE_CUDA_PLANS");
    std::filesystem::remove_all(folder_);
  }
  // Returns the choice between two plans, the second of which is faster.
  static std::size_t choose(Opened& opened) {
    const std::vector<std::string> names{"first", "second"};
    const auto chosen = opened.plans.chooser().choose(
        "key", names, [](std::size_t i) -> Result<double> { return i == 0 ? 2.0 : 1.0; });
    return chosen.value();
  }
  const std::string folder_;
};

TEST_F(LibraryPlansTest, ReadsThePlansTimedByAnEarlierProcess) {
  Opened first;
  EXPECT_EQ(kind_of(*first.device).name, "emulated GPU");
  EXPECT_EQ(kind_of(*first.device).compute_capability, "9.0");
  EXPECT_EQ(kind_of(*first.device).cuda, "13.0");
  EXPECT_EQ(first.plans.chooser().known("key"), nullptr);
  EXPECT_EQ(choose(first), 1U);
  Opened second;
  ASSERT_NE(second.plans.chooser().known("key"), nullptr);
  EXPECT_EQ(*second.plans.chooser().known("key"), (TimedPlan{"second", 1}));
}

// Two trials of a Study that time plans at once run the same plans.
TEST_F(LibraryPlansTest, TakesThePlanThatAnotherProcessStoredFirst) {
  Opened first;
  Opened second;
  EXPECT_EQ(second.plans.chooser().known("key"), nullptr);
  EXPECT_EQ(choose(first), 1U);
  const std::vector<std::string> names{"first", "second"};
  const auto chosen = second.plans.chooser().choose(
      "key", names, [](std::size_t i) -> Result<double> { return i == 0 ? 1.0 : 2.0; });
  EXPECT_EQ(*chosen, 1U);
}

TEST_F(LibraryPlansTest, TimesNothingWhereTheFirstIsWanted) {
  ::setenv("FETTLE_CUDA_PLANS", "first", 1);
  Opened opened;
  EXPECT_EQ(choose(opened), 0U);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(LibraryPlansTest, AFileThatCannotBeUsedIsAWarningNoFailure) {
  GpuKind kind = kind_of(*Opened().device);
  const std::string path = plan_file_path(kind);
  kind.cuda = "12.8";
  std::filesystem::create_directories(folder_);
  ASSERT_TRUE(write_file(path, to_json(kind, {{"key", {"second", 1}}}).dump()).ok());
  ::testing::internal::CaptureStderr();
  Opened opened;
  EXPECT_EQ(opened.plans.chooser().known("key"), nullptr);
  EXPECT_EQ(opened.plans.chooser().known("other"), nullptr) << "and warns once";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("warning: "), HasSubstr(folder_), HasSubstr("cuda: found \"12.8\"")));
  EXPECT_EQ(choose(opened), 1U);
  EXPECT_NE(Opened().plans.chooser().known("key"), nullptr) << "it is replaced";
}

TEST(PlanTimer, TellsMicrosecondsOfARun) {
  const auto device = std::move(Device::open()).value();
  int runs = 0;
  const auto measured = microseconds_of(*device, [&] {
    ++runs;
    return success();
  });
  ASSERT_TRUE(measured.ok());
  EXPECT_GE(*measured, 0);
  EXPECT_GT(runs, 3);
  const auto began = std::chrono::steady_clock::now();
  const auto of_ten_ms = microseconds_of(*device, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return success();
  });
  const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - began;
  EXPECT_GE(*of_ten_ms, 9'000);
  EXPECT_LT(*of_ten_ms, all.count() / 6) << "of one of the dozen, not of some together";
  const auto failed = microseconds_of(*device, []() -> Status { return io_error("does not run"); });
  EXPECT_EQ(failed.error().message, "does not run");
}

TEST_F(LibraryPlansTest, TimesCandidatesOnArraysOfTheirOwn) {
  Opened opened;
  const std::vector<std::string> names{"does not run", "runs"};
  const std::vector<std::int64_t> bytes{1000, 300};
  std::vector<std::size_t> enqueued;
  const auto chosen = fastest_plan(opened.plans, "key", names, bytes,
                                   [&](std::size_t i, std::span<void* const> arrays) -> Status {
                                     enqueued.push_back(i);
                                     EXPECT_EQ(arrays.size(), 2U);
                                     EXPECT_NE(arrays[0], arrays[1]);
                                     std::fill_n(static_cast<char*>(arrays[0]), bytes[0], 'x');
                                     std::fill_n(static_cast<char*>(arrays[1]), bytes[1], 'y');
                                     return i == 0 ? io_error("does not run") : success();
                                   });
  EXPECT_EQ(*chosen, 1U);
  EXPECT_EQ(enqueued.front(), 0U);
  EXPECT_GT(std::count(enqueued.begin(), enqueued.end(), 1U), 3);
  EXPECT_EQ(opened.plans.chooser().known("key")->plan, "runs");
  EXPECT_EQ(opened.device->used(), 0);
}

TEST_F(LibraryPlansTest, TakesTheFirstWhereNoMemoryIsLeftToTimeThem) {
  const OnMachine on({.memory = std::size_t{8} << 20});
  Opened opened;
  const std::vector<std::string> names{"first", "second"};
  const std::vector<std::int64_t> bytes{1000, std::int64_t{9} << 20};
  const auto chosen = fastest_plan(opened.plans, "key", names, bytes,
                                   [](std::size_t, std::span<void* const>) -> Status {
                                     ADD_FAILURE() << "nothing is run";
                                     return success();
                                   });
  EXPECT_EQ(*chosen, 0U);
  EXPECT_EQ(opened.plans.chooser().known("key"), nullptr);
}

TEST_F(LibraryPlansTest, RunsAPlanOnceWhereThereIsMemoryForIt) {
  const OnMachine on({.memory = std::size_t{8} << 20});
  Opened opened;
  const std::vector<std::int64_t> small{1000, 300}, large{std::int64_t{9} << 20};
  int runs = 0;
  const auto enqueue = [&](std::span<void* const> arrays) -> Status {
    ++runs;
    EXPECT_EQ(arrays.size(), 2U);
    return io_error("does not run");
  };
  EXPECT_EQ(run_once(*opened.device, small, enqueue).error().message, "does not run");
  EXPECT_TRUE(run_once(*opened.device, large, enqueue).ok());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(opened.device->used(), 0);
}

}  // namespace
}  // namespace fettle::kernels::cuda
