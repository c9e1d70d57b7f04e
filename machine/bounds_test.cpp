#include "machine/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Two cores of 64 GFLOP/s each, and their connections.
Machine small_machine() {
  Machine machine;
  machine.cpu.cores = machine.cpu.logical = 2;
  machine.cpu.hertz = 2e9;
  machine.cpu.features = {"avx2", "fma"};
  machine.cores = 2;
  machine.usable_memory = 4 * kGiB;
  machine.memory_rate = 10e9;
  machine.disk = {"/data", 10 * kGiB, 20 * kGiB, DiskRate{1e9, 2e9}, ""};
  machine.loopback = 1e9;
  return machine;
}

Gpu h100() {
  Gpu gpu;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.memory = 80 * kGiB;
  gpu.nvlinks = 18;
  return gpu;
}

Need small_need() {
  Need need;
  need.precision = "fp32";
  need.samples_at_once = 128;
  need.memory = kGiB;
  need.checkpoint = kGiB;
  need.flops = 64e9;        // 1 s on one core
  need.memory_bytes = 5e9;  // 0.5 s
  need.sample_bytes = 2e8;  // 0.1 s
  return need;
}

Verdict judge_on(const Machine& machine, const Need& need, bool on_gpu = false) {
  return judge(machine, need, rates_for(machine, need, on_gpu), 3);
}

std::string binding_of(const Verdict& verdict) {
  return verdict.binding ? verdict.bounds[*verdict.binding].name : "";
}

TEST(Bounds, TheLargestBindsAndTheArithmeticIsShown) {
  const Verdict verdict = judge_on(small_machine(), small_need());
  ASSERT_EQ(verdict.bounds.size(), 3U) << "one alone does not communicate";
  EXPECT_EQ(verdict.bounds[0].arithmetic, "64.0 GFLOP / 64.0 GFLOP/s");
  EXPECT_DOUBLE_EQ(verdict.bounds[0].seconds, 1);
  EXPECT_DOUBLE_EQ(verdict.bounds[1].seconds, 0.5);
  EXPECT_DOUBLE_EQ(verdict.bounds[2].seconds, 0.1);
  EXPECT_EQ(binding_of(verdict), "compute");
  EXPECT_THAT(verdict.missing, IsEmpty());
}

TEST(Bounds, EachOfThemCanBind) {
  const struct {
    const char* binding;
    double flops, memory, samples, message;
  } cases[] = {
      {"compute", 64e9, 1e9, 1e8, 0},
      {"memory bandwidth", 1e9, 20e9, 1e8, 0},
      {"data", 1e9, 1e9, 20e9, 0},
      {"communication", 1e9, 1e9, 1e8, 9e9},
      {"", 0, 0, 0, 0},
  };
  for (const auto& c : cases) {
    Need need = small_need();
    need.flops = c.flops;
    need.memory_bytes = c.memory;
    need.sample_bytes = c.samples;
    need.message_bytes = c.message;
    EXPECT_EQ(binding_of(judge_on(small_machine(), need)), c.binding);
  }
}

TEST(Bounds, DataInTheCacheNeedNoMemory) {
  Machine machine = small_machine();
  machine.cpu.cache = 0.25 * kGiB;
  const Verdict partly = judge_on(machine, small_need());
  EXPECT_EQ(partly.bounds[1].arithmetic, "3.49 GiB that no cache holds / 10.0 GB/s");
  EXPECT_DOUBLE_EQ(partly.bounds[1].seconds, 0.375);
  machine.cpu.cache = kGiB;
  const Verdict all = judge_on(machine, small_need());
  EXPECT_EQ(all.bounds[1].name, "data");
}

TEST(Bounds, WorkersShareTheCoresTheMemoryAndItsBandwidth) {
  Need need = small_need();
  need.world_size = 4;
  need.memory = 2 * kGiB;
  const Verdict verdict = judge_on(small_machine(), need);
  EXPECT_DOUBLE_EQ(verdict.bounds[0].seconds, 2) << "half a core each";
  EXPECT_DOUBLE_EQ(verdict.bounds[1].seconds, 2);
  EXPECT_THAT(verdict.missing,
              ElementsAre("memory: 4 workers need 8.00 GiB, there are 4.00 GiB; a smaller "
                          "training.maxPerWorker than 128 needs less"));
  EXPECT_THAT(verdict.notes, ElementsAre("4 threads (workers x training.threads) share 2 cores"));
}

TEST(Bounds, CheckpointsNeedRoom) {
  Machine machine = small_machine();
  machine.disk.free = 2 * kGiB;
  EXPECT_THAT(judge_on(machine, small_need()).missing,
              ElementsAre("disk: 3 checkpoints take 3.00 GiB, 2.00 GiB are free in /data"));
}

TEST(Bounds, OnAGpuItsDataSheetCounts) {
  Machine machine = small_machine();
  machine.gpus.all = {h100()};
  machine.pci = 60e9;
  Need need = small_need();
  need.precision = "bf16";
  need.world_size = 2;
  need.memory = 50 * kGiB;  // each has its own memory
  need.flops = 989.4e12;
  need.memory_bytes = 3.35e12 / 2;
  need.sample_bytes = 6e9;
  need.message_bytes = 45e9;
  const Verdict verdict = judge_on(machine, need, true);
  ASSERT_EQ(verdict.bounds.size(), 4U);
  EXPECT_DOUBLE_EQ(verdict.bounds[0].seconds, 1);
  EXPECT_DOUBLE_EQ(verdict.bounds[1].seconds, 0.5);
  EXPECT_DOUBLE_EQ(verdict.bounds[2].seconds, 0.1);
  EXPECT_DOUBLE_EQ(verdict.bounds[3].seconds, 0.1);
  EXPECT_THAT(verdict.bounds[3].arithmetic, HasSubstr("450 GB/s over NVLink"));
  EXPECT_THAT(verdict.missing, IsEmpty());
  need.memory = 90 * kGiB;
  EXPECT_THAT(judge_on(machine, need, true).missing,
              ElementsAre(HasSubstr("memory: 1 worker needs 90.0 GiB, there are 80.0 GiB")));
}

TEST(Bounds, UnknownRatesBoundNothing) {
  Machine machine = small_machine();
  machine.gpus.all = {h100()};
  machine.gpus.all[0].name = "NVIDIA Something";
  EXPECT_THAT(judge_on(machine, small_need(), true).bounds, IsEmpty());
}

TEST(Need, IsReadFromADryRun) {
  const char* text = R"({"precision": "bf16", "threads": 4, "checkpoint_bytes": 7,
      "memory": {"total": 9}, "step": {"world_size": 2, "global_batch": 128, "samples_at_once": 64,
      "flops": 1.5e9, "memory_bytes": 2, "sample_bytes": 3, "message_bytes": 4}})";
  const auto need = read_need(*parse_json(text));
  ASSERT_TRUE(need.ok());
  EXPECT_EQ(need->precision, "bf16");
  EXPECT_EQ(need->threads, 4);
  EXPECT_EQ(need->memory, 9);
  EXPECT_EQ(need->flops, 1.5e9);
  EXPECT_EQ(need->message_bytes, 4);
  Json without = *parse_json(text);
  without.find("step")->erase("flops");
  EXPECT_EQ(read_need(without).error().message, "flops is missing");
  EXPECT_EQ(read_need(Json::object()).error().message, "precision is missing");
}

}  // namespace
}  // namespace fettle::machine
