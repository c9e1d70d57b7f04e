#include "runtime/kubernetes/gpu/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace fettle::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGood = R"([{"name": "mps", "sharing": "MPS", "memory": "80Gi",
    "offers": {"fraction": {"step": 0.25, "max": 0.25}}, "enforces": "Memory",
    "put": {"limits": {"nvidia.com/gpu.shared": 1}}}])";
constexpr const char* kBad = R"([{"name": "mps", "sharing": "MPS", "offers": {}}])";

class Catalogue : public testing::Test {
 protected:
  Catalogue() : path_(testing::TempDir() + "fettle-gpu-profiles.json") {}

  void write(const std::string& text) { ASSERT_TRUE(write_file(path_, text).ok()); }
  GpuCatalogue open() {
    return GpuCatalogue(path_, [this](bool is_wrong, const std::string& message) {
      told_.push_back((is_wrong ? "wrong: " : "in force: ") + message.substr(0, 30));
    });
  }

  const std::string path_;
  std::vector<std::string> told_;
};

TEST_F(Catalogue, AnEmptyListStandsForWholeGpus) {
  write("[]");
  EXPECT_EQ(*open().profiles(0).value(), api::default_gpu_profiles());
}

TEST_F(Catalogue, AChangeIsSeenWithinTenSecondsAndToldOnce) {
  write("[]");
  GpuCatalogue catalogue = open();
  EXPECT_EQ(catalogue.profiles(0).value()->front().name, "whole");
  EXPECT_EQ(catalogue.changed_ms(), 0) << "the first list is no change";
  write(kGood);
  EXPECT_EQ(catalogue.profiles(9'999).value()->front().name, "whole");
  EXPECT_EQ(catalogue.profiles(10'000).value()->front().name, "mps");
  EXPECT_EQ(catalogue.profiles(20'000).value()->front().name, "mps");
  EXPECT_EQ(catalogue.changed_ms(), 10'000);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("in force: none"), "in force: mps"));
}

TEST_F(Catalogue, AListThatIsWrongLeavesTheEarlierOneInForce) {
  write(kGood);
  GpuCatalogue catalogue = open();
  ASSERT_TRUE(catalogue.profiles(0).ok());
  write(kBad);
  EXPECT_EQ(catalogue.profiles(10'000).value()->front().name, "mps");
  EXPECT_EQ(catalogue.profiles(20'000).value()->front().name, "mps");
  EXPECT_THAT(told_, ElementsAre("in force: mps", HasSubstr("wrong: GPU profile mps: ")));
}

TEST_F(Catalogue, WithoutARightOneNothingIsPlacedAndTheProfileIsNamed) {
  write(kBad);
  GpuCatalogue catalogue = open();
  const auto profiles = catalogue.profiles(0);
  ASSERT_FALSE(profiles.ok());
  EXPECT_EQ(profiles.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(profiles.error().message, HasSubstr("GPU profile mps: enforces: is missing"));
  write(kGood);
  EXPECT_TRUE(catalogue.profiles(10'000).ok());
}

TEST_F(Catalogue, AFileThatIsGoneOrNoJsonIsTold) {
  EXPECT_THAT(GpuCatalogue(path_ + ".none").profiles(0).error().message,
              HasSubstr("gpu-profiles.json.none"));
  write("[");
  EXPECT_EQ(open().profiles(0).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace fettle::kubernetes
