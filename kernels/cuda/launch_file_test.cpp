// The file of tuned launch configurations: what is written is read, and what was measured for
// something else, or by nobody, is refused with a sentence.
#include "kernels/cuda/launch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const GpuKind kH100{"NVIDIA H100 80GB HBM3", "9.0", "13.0", "0.1.0"};
const LaunchConfigs kConfigs{{"optimizer/update", {512, 4}}, {"relu/forward", {128, 0}}};

class LaunchFile : public ::testing::Test {
 protected:
  LaunchFile()
      : folder_(::testing::TempDir() + "launch_file_" + std::to_string(getpid()) + "/kernels") {
    ::setenv("FETTLE_KERNEL_CACHE", folder_.c_str(), 1);
  }
  ~LaunchFile() override {
    ::unsetenv("FETTLE_KERNEL_CACHE");
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
  }
  // Why a file with this text is not used.
  std::string why_not(const std::string& text) {
    EXPECT_TRUE(make_directories(folder_).ok());
    EXPECT_TRUE(write_file(launch_file_path(kH100), text).ok());
    const auto loaded = load_launch_configs(kH100);
    return loaded.ok() ? "it is used" : loaded.error().message;
  }

  const std::string folder_;
};

TEST_F(LaunchFile, WhatIsKeptIsFoundAgain) {
  const auto path = save_launch_configs(kH100, kConfigs);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(*path, folder_ + "/nvidia-h100-80gb-hbm3-9-0.json");
  EXPECT_EQ(*load_launch_configs(kH100), kConfigs);
}

TEST_F(LaunchFile, WithoutAFileNothingIsTuned) {
  EXPECT_EQ(*load_launch_configs(kH100), LaunchConfigs{});
}

TEST_F(LaunchFile, EachKindOfGpuHasItsOwn) {
  ASSERT_TRUE(save_launch_configs(kH100, kConfigs).ok());
  EXPECT_EQ(*load_launch_configs({"NVIDIA A100", "8.0", "13.0", "0.1.0"}), LaunchConfigs{});
}

TEST_F(LaunchFile, OffKeepsNothingAndReadsNothing) {
  ASSERT_TRUE(save_launch_configs(kH100, kConfigs).ok());
  ::setenv("FETTLE_KERNEL_CACHE", "off", 1);
  EXPECT_EQ(*load_launch_configs(kH100), LaunchConfigs{});
  EXPECT_THAT(save_launch_configs(kH100, kConfigs).error().message,
              HasSubstr("set FETTLE_KERNEL_CACHE to a folder"));
}

TEST_F(LaunchFile, SaysThatItWasMeasuredForSomethingElse) {
  const auto written_for = [](const GpuKind& device) { return to_json(device, kConfigs).dump(); };
  GpuKind other = kH100;
  other.cuda = "12.8";
  EXPECT_THAT(
      why_not(written_for(other)),
      AllOf(HasSubstr(launch_file_path(kH100)),
            HasSubstr("cuda: found \"12.8\", expected \"13.0\""),
            HasSubstr("the usual launch configurations are used"), HasSubstr("--tune-kernels")));
  other = kH100;
  other.fettle = "0.0.9";
  EXPECT_THAT(why_not(written_for(other)), HasSubstr("fettle: found \"0.0.9\""));
  other = kH100;
  other.name = "nvidia-h100-80gb hbm3";  // of the same file name
  EXPECT_THAT(why_not(written_for(other)), HasSubstr("device: found \"nvidia-h100-80gb hbm3\""));
}

TEST_F(LaunchFile, RefusesWhatNobodyMeasured) {
  Json file = to_json(kH100, kConfigs);
  EXPECT_THAT(why_not("{\"device\": "), HasSubstr("line 1"));
  EXPECT_THAT(why_not("[]"), HasSubstr("device: found nothing"));
  file.find("kernels")->set("relu/forward", Json::object({{"threads", 100}}));
  EXPECT_THAT(why_not(file.dump()), HasSubstr("no blocks of 100 threads"));
  file.find("kernels")->set("relu/forward", Json::object({{"threads", "many"}}));
  EXPECT_THAT(why_not(file.dump()), HasSubstr("threads: found \"many\", expected a whole number"));
  file.find("kernels")->set("relu/forward", Json::object({{"threads", 128}}));
  file.find("kernels")->set("relu/sideways", Json::object({{"threads", 128}}));
  EXPECT_THAT(why_not(file.dump()), HasSubstr("there is no kernel \"relu/sideways\""));
  file.set("kernels", 3);
  EXPECT_THAT(why_not(file.dump()), HasSubstr("kernels: expected an object"));
}

}  // namespace
}  // namespace fettle::kernels::cuda
