// The table testdata/placements.yaml, and properties of all placements.
#include "runtime/kubernetes/gpu/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/fields/quantity.h"
#include "runtime/kubernetes/gpu/testing/test_profiles.h"

namespace fettle::kubernetes {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

GpuRequest request_of(const Json& ask) {
  GpuRequest request;
  for (const auto& [key, value] : ask.as_object()) {
    if (key == "count") request.count = value.as_integer();
    if (key == "fraction") request.fraction = value.as_double();
    if (key == "memory") request.memory = api::parse_quantity(value.as_string()).value();
    if (key == "model") request.model = value.as_string();
    if (key == "workers") request.workers = value.as_integer();
    if (key == "parallelism") request.parallelism = value.as_integer();
  }
  return request;
}

// A placement as the table writes it.
Json told(const GpuPlacement& placement) {
  Json limits = Json::object();
  for (const auto& [resource, amount] : placement.limits) limits.set(resource, amount);
  Json out = Json::object({{"profile", placement.profile}, {"gpus", placement.gpus}});
  if (placement.memory) {
    out.set("mib", static_cast<std::int64_t>(static_cast<double>(*placement.memory) / kMib));
  }
  out.set("limits", limits);
  return out;
}

class PlacementTable : public testing::TestWithParam<Json> {};

TEST_P(PlacementTable, IsAsWritten) {
  const Json& row = GetParam();
  const Json* const of = row.find("of");
  const std::vector<api::GpuProfile> profiles =
      of == nullptr ? api::default_gpu_profiles() : listed_profiles(*of);
  const auto placed = place(request_of(*row.find("ask")), profiles);
  if (const Json* refused = row.find("refused")) {
    ASSERT_TRUE(std::holds_alternative<GpuRefusal>(placed));
    EXPECT_EQ(std::get<GpuRefusal>(placed).error().message, refused->as_string());
    return;
  }
  ASSERT_TRUE(std::holds_alternative<GpuPlacement>(placed))
      << std::get<GpuRefusal>(placed).error().message;
  const Json found = told(std::get<GpuPlacement>(placed));
  EXPECT_TRUE(found == *row.find("expect")) << found.dump();
}

std::string name_of_case(const testing::TestParamInfo<Json>& row) {
  std::string name = row.param.find("case")->as_string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, PlacementTable,
                         testing::ValuesIn(test_document("placements.yaml").as_array()),
                         name_of_case);

TEST(Placement, ACpuTrialAsksForNothing) {
  EXPECT_EQ(place_gpus(api::StudySpec(), api::default_gpu_profiles()).value(), std::nullopt);
}

TEST(Placement, SaysWhyAndWhatKeepsATrialToItsShare) {
  GpuRequest request;
  request.fraction = 0.25;
  const auto placed = place(request, test_profiles({"kai-fraction", "mig-1g-20gb"}));
  const api::GpuChoice choice = choice_of(std::get<GpuPlacement>(placed));
  EXPECT_EQ(choice.sharing, "MIG");
  EXPECT_EQ(choice.enforces, "Hardware");
  EXPECT_EQ(choice.reason,
            "profile mig-1g-20gb gives fraction 0.25, 0.25 of a card with 19968Mi; enforced by the "
            "hardware; of 2 profiles that offer it none enforces more");
}

// A worker killed in the middle of a kernel can take its neighbours with it.
TEST(Placement, WhoeverSharesACardGetsTimeToDrainIt) {
  GpuRequest share;
  share.fraction = 0.25;
  EXPECT_EQ(std::get<GpuPlacement>(place(share, test_profiles({"mps-quarter"}))).least_grace, 60);
  EXPECT_EQ(std::get<GpuPlacement>(place(share, test_profiles({"mig-1g-20gb"}))).least_grace, 0);
  GpuRequest whole;
  whole.count = 1;
  EXPECT_EQ(std::get<GpuPlacement>(place(whole, test_profiles({"hami"}))).least_grace, 0);
}

TEST(Placement, EveryProfileOfTheDocumentationIsValid) { EXPECT_GE(test_profiles().size(), 20U); }

}  // namespace
}  // namespace fettle::kubernetes
