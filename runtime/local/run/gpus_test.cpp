#include "runtime/local/run/gpus.h"

#include <gtest/gtest.h>

#include "base/test_paths.h"

namespace fettle::local {
namespace {

using Names = std::vector<GpuName>;

machine::Gpu card(const std::string& name, const std::string& uuid, const std::string& pci) {
  machine::Gpu gpu;
  gpu.name = name;
  gpu.uuid = uuid;
  gpu.pci = pci;
  return gpu;
}

GpuSources two_alike() {
  GpuSources sources;
  sources.driver.all = {card("H100", "GPU-aa", "00000000:18:00.0"),
                        card("H100", "GPU-bb", "00000000:3B:00.0")};
  return sources;
}

TEST(Gpus, AreTheDriversUuids) {
  GpuSources sources = two_alike();
  sources.nodes = {2, 3};  // a container's: CUDA would not know a number 2
  EXPECT_EQ(name_gpus(sources).names, (Names{{"GPU-aa", "GPU-aa"}, {"GPU-bb", "GPU-bb"}}));
  EXPECT_FALSE(name_gpus(sources).by_pci);
}

TEST(Gpus, ACardThatIsCutIsItsParts) {
  GpuSources sources = two_alike();
  sources.driver.all[0].mig = true;
  sources.driver.all[0].instances = {{"MIG 3g", "MIG-1", 0}, {"MIG 3g", "MIG-2", 0}};
  EXPECT_EQ(name_gpus(sources).names,
            (Names{{"MIG-1", "MIG-1"}, {"MIG-2", "MIG-2"}, {"GPU-bb", "GPU-bb"}}));
}

TEST(Gpus, WithoutADriverTheyArePlacesInTheOrderOfTheBuses) {
  GpuSources sources;
  sources.nodes = {3, 5};  // CUDA counts from 0
  EXPECT_EQ(name_gpus(sources).names, (Names{{"nvidia3", "0"}, {"nvidia5", "1"}}));
  EXPECT_TRUE(name_gpus(sources).by_pci);
}

// Chosen names stay, but two Studies that name one card differently know that it is the same card.
TEST(Gpus, ThoseThatWereChosenKeepTheirNamesAndAreKnownByTheirUuids) {
  const struct {
    const char* chosen;
    bool by_pci;
    bool mixed;
    Names names;
  } rows[] = {
      {"1", false, false, {{"GPU-bb", "1"}}},
      {"GPU-b", false, false, {{"GPU-bb", "GPU-b"}}},
      {"1,GPU-bb,0", false, false, {{"GPU-bb", "1"}, {"GPU-aa", "0"}}},
      {"7", false, false, {{"cuda:7", "7"}}},
      {"1,-1,0", false, false, {{"GPU-bb", "1"}}},
      {"", false, false, {}},
      {"0", false, true, {{"cuda:0", "0"}}},  // the fastest, which cannot be identified
      {"0", true, true, {{"GPU-aa", "0"}}},
      {"MIG-9", false, false, {{"MIG-9", "MIG-9"}}},
  };
  for (const auto& row : rows) {
    GpuSources sources = two_alike();
    sources.chosen = row.chosen;
    sources.by_pci = row.by_pci;
    if (row.mixed) sources.driver.all[1].name = "T4";
    EXPECT_EQ(name_gpus(sources).names, row.names) << row.chosen;
  }
}

TEST(Gpus, AreAskedOfTheDriversLibrary) {
  GpuSources sources;
  sources.driver = machine::find_gpus(program_path("../tests/fake_nvml/libnvidia-ml.so.1"));
  // Its first card is cut in two, which the stand-in calls by one name.
  EXPECT_EQ(name_gpus(sources).names, (Names{{"MIG-5", "MIG-5"}, {"GPU-2", "GPU-2"}}));
}

}  // namespace
}  // namespace fettle::local
