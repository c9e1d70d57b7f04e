#include "base/machine/gpu_meter.h"

#include <gtest/gtest.h>

#include "base/test_paths.h"

namespace fettle::machine {
namespace {

std::string fake_nvml() { return program_path("../tests/fake_nvml/libnvidia-ml.so.1"); }

TEST(GpuReadings, AreMeansSinceTheLastQuestion) {
  GpuReadings readings;
  readings.add({.utilization = 1.0, .memory = 10, .power = 100, .energy = {}}, 0);
  readings.add({.utilization = 0.5, .memory = 30, .power = 200, .energy = {}}, 1);
  readings.add({.utilization = {}, .memory = 20, .power = 600, .energy = {}}, 2);
  const GpuUse first = readings.take();
  EXPECT_EQ(first.utilization, 0.75);
  EXPECT_EQ(first.memory, 30) << "the most";
  EXPECT_EQ(first.power, 300);
  EXPECT_EQ(first.energy, std::nullopt);
  readings.add({.utilization = 0.25, .memory = 5, .power = 50, .energy = {}}, 3);
  const GpuUse second = readings.take();
  EXPECT_EQ(second.utilization, 0.25);
  EXPECT_EQ(second.memory, 5);
  EXPECT_EQ(second.power, 50);
}

// Power jumps within milliseconds; only the counter knows the energy between two readings.
TEST(GpuReadings, TheEnergyCounterTellsThePowerAndTheWholeTrial) {
  GpuReadings readings;
  readings.add({.utilization = {}, .memory = {}, .power = 1, .energy = 5000}, 10);
  readings.add({.utilization = {}, .memory = {}, .power = 1, .energy = 5400}, 12);
  EXPECT_EQ(readings.take().power, 200);
  readings.add({.utilization = {}, .memory = {}, .power = 1, .energy = 5500}, 13);
  const GpuUse use = readings.take();
  EXPECT_EQ(use.power, 100) << "from where the last question left off";
  EXPECT_EQ(use.energy, 500);
}

TEST(GpuReadings, AreAbsentWithoutNumbers) {
  GpuReadings readings;
  const GpuUse use = readings.take();
  EXPECT_FALSE(use.utilization || use.memory || use.power || use.energy);
}

TEST(GpuMeter, ReadsTheGpuOfThisUuid) {
  const auto meter = GpuMeter::open("2", fake_nvml());
  ASSERT_NE(meter, nullptr);
  const GpuUse use = meter->take();
  EXPECT_EQ(use.utilization, 0.5);
  EXPECT_EQ(use.memory, double{1 << 30});
  EXPECT_GE(use.energy, 1.0) << "the first reading is made by open()";
  EXPECT_GT(meter->take().energy, use.energy);
}

// A part does not report the use of the whole card.
TEST(GpuMeter, TellsOnlyTheMemoryOfAPart) {
  const auto meter = GpuMeter::open("5", fake_nvml());
  ASSERT_NE(meter, nullptr);
  const GpuUse use = meter->take();
  EXPECT_EQ(use.memory, double{1 << 30});
  EXPECT_FALSE(use.utilization || use.power || use.energy);
}

TEST(GpuMeter, IsNotThereWithoutSuchAGpuOrADriver) {
  EXPECT_EQ(GpuMeter::open("3", fake_nvml()), nullptr);
  EXPECT_EQ(GpuMeter::open("", fake_nvml()), nullptr);
  EXPECT_EQ(GpuMeter::open("1", fake_nvml()), nullptr) << "a whole card that is cut into parts";
  EXPECT_EQ(GpuMeter::open("2", "libnvidia-ml-that-is-not-there.so.1"), nullptr);
}

}  // namespace
}  // namespace fettle::machine
