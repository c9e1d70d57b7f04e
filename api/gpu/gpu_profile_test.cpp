// GPU profiles as documents: valid profiles, and every error in a profile.
#include "api/gpu/gpu_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/gpu/gpu_slots.h"

namespace fettle::api {
namespace {

using testing::HasSubstr;

Json json(const std::string& text) {
  Result<Json> value = parse_json(text);
  CHECK(value.ok(), value.error().message);
  return *value;
}

// Returns a valid profile with `changes` laid over its top level.
Json profile_with(const std::string& changes) {
  Json profile = json(R"({"name": "mps", "sharing": "MPS", "memory": "80Gi",
      "offers": {"fraction": {"step": 0.25, "max": 0.25}}, "enforces": "Memory",
      "put": {"limits": {"nvidia.com/gpu.shared": 1}}})");
  const Json laid_over = json(changes);
  for (const auto& [key, value] : laid_over.as_object()) profile.set(key, value);
  return profile;
}

std::string error_of(const Json& list) {
  const auto read = read_gpu_profiles(list);
  return read.ok() ? "" : read.error().message;
}

TEST(GpuProfile, IsReadAndWrittenAlike) {
  const Json list(Json::Array{profile_with("{}")});
  const auto profiles = read_gpu_profiles(list);
  ASSERT_TRUE(profiles.ok()) << profiles.error().message;
  EXPECT_EQ(profiles->at(0).offers.fraction->step, 0.25);
  EXPECT_EQ(profiles->at(0).memory, 80.0 * (1LL << 30));
  EXPECT_EQ(read_gpu_profiles(write_gpu_profiles(*profiles)).value(), *profiles);
}

TEST(GpuProfile, DefaultsAreValidAndNeedNoAdministrator) {
  const auto read = read_gpu_profiles(write_gpu_profiles(default_gpu_profiles()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, default_gpu_profiles());
}

struct BadProfile {
  const char* changes;
  const char* error;  // begins with the profile's name
};

class BadGpuProfile : public testing::TestWithParam<BadProfile> {};

TEST_P(BadGpuProfile, IsToldByNameWithTheWayOut) {
  const Json list(Json::Array{profile_with(GetParam().changes)});
  EXPECT_THAT(error_of(list), HasSubstr(GetParam().error));
  EXPECT_THAT(error_of(list), testing::StartsWith("GPU profile "));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadGpuProfile,
    testing::Values(
        BadProfile{R"({"name": null})", "GPU profile number 1: name: is missing"},
        BadProfile{R"({"sharing": "Sliced"})", "GPU profile mps: sharing: found \"Sliced\""},
        BadProfile{R"({"offer": {}})", "GPU profile mps: offer: "},
        BadProfile{R"({"offers": {}})",
                   "offers: has none of count, fraction and memory; expected at least one"},
        BadProfile{R"({"offers": {"fraction": {"step": 1.5}}})", "offers.fraction.step: found 1.5"},
        BadProfile{R"({"offers": {"fraction": {"step": 0}}})", "offers.fraction.step: found 0"},
        BadProfile{R"({"offers": {"fraction": {"step": 0.5, "max": 0.25}}})",
                   "offers.fraction: found max 0.25, expected at least step, which is 0.5"},
        BadProfile{R"({"memory": null, "sharing": "HAMi", "offers": {"memory": {"step": "1Mi"}}})",
                   "memory: is missing; offers.memory needs the memory of one card"},
        BadProfile{R"({"sharing": "HAMi", "offers": {"memory": {"step": "1Gi", "max": "90Gi"}}})",
                   "offers.memory: found 90Gi, which is more than one card has (80Gi)"},
        // Promises that the way of sharing does not keep.
        BadProfile{R"({"offers": {"count": 4}})", "offers.count: found with sharing MPS"},
        BadProfile{R"({"offers": {"fraction": {"step": 0.25}}})",
                   "offers.fraction: offers several sizes with sharing MPS"},
        BadProfile{R"({"enforces": "Hardware"})",
                   "enforces: found Hardware; sharing MPS enforces Memory at most"},
        BadProfile{R"({"sharing": "TimeSlicing"})",
                   "enforces: found Memory; sharing TimeSlicing enforces Nothing at most"},
        BadProfile{R"({"sharing": "Whole"})", "offers.fraction: found with sharing Whole"},
        // Fields put on pods.
        BadProfile{R"({"put": {}})", "put: asks for nothing; expected limits, a claim, or"},
        BadProfile{R"({"put": {"limits": {}}})", "put: asks for nothing"},
        BadProfile{R"({"put": {"annotations": {"gpu-fraction": "{fraction}"}}})",
                   "put.schedulerName: is missing"},
        BadProfile{
            R"({"put": {"limits": {"nvidia.com/gpumem": "{mb}"}}})",
            "found the slot {mb}, expected {count}, {fraction}, {percent}, {mib} or {units}"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpumem": "{mib}Mi"}}})",
                   "extended resources are counted"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpu": 0}}})", "found 0, expected a whole"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpu": 0.5}}})",
                   "found 0.5, expected a whole"},
        BadProfile{R"({"put": {"limits": {"memory": 4}}})", "the name of an extended resource"},
        BadProfile{R"({"memory": null, "put": {"limits": {"nvidia.com/gpumem": "{mib}"}}})",
                   "found {mib}, for which the profile must say the memory of one card"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpu": 1}, "labels": {"a": "{percent}%"}}})",
                   "put.labels.a: found \"{percent}%\", expected the value of a label"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpu": 1},
                               "labels": {"fettle.dev/trial": "x"}}})",
                   "put.labels.fettle.dev/trial: is written by others"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpu": 1}, "env": {"FETTLE_TRIAL": "x"}}})",
                   "put.env.FETTLE_TRIAL: is Fettle's own"},
        BadProfile{R"({"put": {"claim": {"devices": {}}}})", "put.claim: has no devices.requests"},
        BadProfile{R"({"put": {"limits": {"nvidia.com/gpu": 1}, "sharedClaim": true}})",
                   "put.sharedClaim: found without claim"},
        BadProfile{R"({"put": {"claim": {"devices": {"requests": [{"name": "{card}"}]}}}})",
                   "put.claim: found the slot {card}"},
        // Rules of KAI-Scheduler's validator.
        BadProfile{R"({"sharing": "KAI", "put": {"schedulerName": "kai-scheduler",
                       "limits": {"nvidia.com/gpu": 1},
                       "annotations": {"gpu-fraction": "{fraction}"}}})",
                   "put.limits: found nvidia.com/gpu beside a fraction, which KAI-Scheduler"},
        BadProfile{R"({"sharing": "KAI", "put": {"schedulerName": "kai-scheduler",
                       "annotations": {"gpu-fraction": "{fraction}", "gpu-memory": "{mib}"}}})",
                   "put.annotations: found gpu-fraction and gpu-memory"}));

TEST(GpuProfiles, AllThatIsWrongIsToldAtOnce) {
  const Json list(Json::Array{profile_with(R"({"offers": {}})"),
                              profile_with(R"({"name": "kai", "sharing": "None"})")});
  EXPECT_THAT(error_of(list), HasSubstr("GPU profile mps: offers"));
  EXPECT_THAT(error_of(list), HasSubstr("\nGPU profile kai: sharing"));
}

TEST(GpuProfiles, TheSameNameTwiceIsRefused) {
  const Json list(Json::Array{profile_with("{}"), profile_with("{}")});
  EXPECT_EQ(
      error_of(list),
      "GPU profile mps: name: an earlier profile has the same; expected a different name each");
}

TEST(GpuProfiles, AreAList) {
  EXPECT_THAT(error_of(Json::object()), HasSubstr("gpuProfiles: found"));
  EXPECT_EQ(error_of(Json::array()), "");
  EXPECT_THAT(error_of(Json(Json::Array(65))), HasSubstr("found 65 profiles, expected at most 64"));
  EXPECT_THAT(error_of(Json(Json::Array(1))), HasSubstr("GPU profile number 1: "));
}

TEST(GpuSlots, ANumberAloneIsANumberAndTextOtherwise) {
  GpuSlotValues values;
  values.count = 4;
  values.fraction = 0.29;
  values.percent = 29;
  values.mib = 20480;
  const Json filled = fill_slots_in(
      json(R"({"a": "{count}", "b": ["{mib}Mi"], "c": "{fraction}", "d": "{\"x\": 1} {y z}"})"),
      values);
  EXPECT_EQ(filled.dump(), R"({"a":4,"b":["20480Mi"],"c":0.29,"d":"{\"x\": 1} {y z}"})");
  EXPECT_EQ(fill_slots("{percent}", values), "29");
}

}  // namespace
}  // namespace fettle::api
