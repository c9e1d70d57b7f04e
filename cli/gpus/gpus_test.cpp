// `fettle gpus` against an API server in memory.
#include "cli/gpus/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/gpu/gpu_profile.h"
#include "api/yaml/yaml_reader.h"
#include "cli/gpus/proposal.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json json(const std::string& text) {
  Result<Json> value = parse_json(text);
  CHECK(value.ok(), value.error().message);
  return *value;
}

Json node(const std::string& name, const std::string& labels, const std::string& allocatable,
          const std::string& annotations = "{}") {
  return json(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ")" + name +
              R"(", "labels": )" + labels + R"(, "annotations": )" + annotations +
              R"(}, "status": {"allocatable": )" + allocatable + "}}");
}

class GpusTest : public testing::Test {
 protected:
  void put_node(const Json& object) { server_.set({"", "v1", "nodes", "Node"}, object); }
  void put_pod(const std::string& name, const std::string& node, const std::string& resource,
               const std::string& amount, const std::string& phase = "Running") {
    server_.set(kube::kPods,
                json(R"({"metadata": {"namespace": "team", "name": ")" + name +
                     R"("}, "spec": {"nodeName": ")" + node +
                     R"(", "containers": [{"name": "c", "resources": {"limits": {")" + resource +
                     R"(": ")" + amount + R"("}}}]}, "status": {"phase": ")" + phase + R"("}})"));
  }
  void forbid(const std::string& path) {
    kube::Fault fault;
    fault.kind = kube::Fault::Kind::kAnswer;
    fault.matches = [path](const kube::HttpRequest& request) {
      return request.target.starts_with(path);
    };
    fault.every = 1;
    fault.answer.status = 403;
    fault.answer.body =
        R"({"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403})";
    server_.inject(fault);
  }
  void answer(const std::string& path) {
    kube::Fault fault;
    fault.kind = kube::Fault::Kind::kAnswer;
    fault.matches = [path](const kube::HttpRequest& request) { return request.target == path; };
    fault.every = 1;
    fault.answer.status = 200;
    fault.answer.body = "{}";
    server_.inject(fault);
  }
  GpuInventory read() {
    kube::Client client(server_, {});
    const auto inventory = read_gpu_inventory(client);
    CHECK(inventory.ok(), inventory.error().message);
    return *inventory;
  }
  // Returns the names of the proposals; the operator would accept all of them.
  std::vector<std::string> proposed(const GpuInventory& inventory) {
    const std::vector<api::GpuProfile> profiles = propose_profiles(inventory);
    const auto read = api::read_gpu_profiles(api::write_gpu_profiles(profiles));
    EXPECT_TRUE(read.ok()) << read.error().message;
    std::vector<std::string> names;
    for (const api::GpuProfile& profile : profiles) names.push_back(profile.name);
    return names;
  }

  kube::FakeApiServer server_;
};

constexpr const char* kH100 = R"({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "8"})";

TEST_F(GpusTest, WholeCardsAreListedWithUsedAndFree) {
  put_node(node("gpu-1", kH100, R"({"cpu": "64", "nvidia.com/gpu": "8"})"));
  put_node(node("cpu-1", "{}", R"({"cpu": "64"})"));
  put_pod("a", "gpu-1", "nvidia.com/gpu", "3");
  put_pod("b", "gpu-1", "nvidia.com/gpu", "2", "Succeeded");
  const GpuInventory inventory = read();
  EXPECT_EQ(
      render_gpus(inventory, "kubectl fettle", {.color = false}),
      "  node   card                    memory  shared by  resource        total  used  free\n"
      "  gpu-1  NVIDIA-H100-80GB-HBM3  81559Mi  -          nvidia.com/gpu      8     3     5\n"
      "\n`kubectl fettle gpus --output values` prints 1 profile for the chart's gpuProfiles; "
      "docs/gpus.md explains them.\n");
  EXPECT_THAT(proposed(inventory), ElementsAre("whole-nvidia-h100-80gb-hbm3"));
  EXPECT_EQ(propose_profiles(inventory)[0].offers.count, 8);
}

TEST_F(GpusTest, ValuesAreReadyToPaste) {
  put_node(node("gpu-1", kH100, R"({"nvidia.com/gpu": "8"})"));
  const std::string values = render_gpu_values(read());
  const api::ReadYaml yaml = api::read_yaml(values);
  ASSERT_TRUE(yaml.errors.empty()) << values;
  const auto profiles = api::read_gpu_profiles(*yaml.documents.at(0).value().find("gpuProfiles"));
  ASSERT_TRUE(profiles.ok()) << values << profiles.error().message;
  EXPECT_EQ(*profiles, propose_profiles(read()));
  EXPECT_THAT(values, Not(HasSubstr("sharedClaim"))) << "no defaults";
}

TEST_F(GpusTest, MigSlicesHaveTheirRealMemoryAndTheSmallestIsFirst) {
  put_node(node("gpu-1",
                R"({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                    "nvidia.com/gpu.memory": "81559", "nvidia.com/mig.strategy": "mixed",
                    "nvidia.com/mig-1g.20gb.memory": "20096",
                    "nvidia.com/mig-3g.40gb.memory": "40448"})",
                R"({"nvidia.com/mig-3g.40gb": "2", "nvidia.com/mig-1g.20gb": "4"})"));
  const GpuInventory inventory = read();
  EXPECT_THAT(proposed(inventory), ElementsAre("mig-1g-20gb-nvidia-h100-80gb-hbm3",
                                               "mig-3g-40gb-nvidia-h100-80gb-hbm3"));
  const auto profiles = propose_profiles(inventory);
  EXPECT_EQ(profiles[0].offers.fraction->step, 0.25);
  EXPECT_EQ(profiles[0].offers.memory->step, 20096.0 * (1 << 20));
  EXPECT_EQ(profiles[1].offers.fraction->step, 0.5);
  EXPECT_EQ(profiles[0].put.node_selector.at("nvidia.com/gpu.product"), "NVIDIA-H100-80GB-HBM3")
      << "other cards have slices of that name";
}

// With the strategy "single", slices are named like whole cards.
TEST_F(GpusTest, SlicesThatAreCalledAsCardsAreAreNoCards) {
  put_node(node("slices-1",
                R"({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.20gb",
                    "nvidia.com/gpu.memory": "20096", "nvidia.com/gpu.count": "32",
                    "nvidia.com/mig.strategy": "single"})",
                R"({"nvidia.com/gpu": "32"})"));
  const std::string name = "mig-1g-20gb-nvidia-h100-80gb-hbm3";
  ASSERT_THAT(proposed(read()), ElementsAre(name));
  EXPECT_EQ(propose_profiles(read())[0].offers.fraction->step, 0.125) << "a seventh, by its name";

  put_node(node("whole-1", kH100, R"({"nvidia.com/gpu": "8"})"));
  ASSERT_THAT(proposed(read()), ElementsAre("whole-nvidia-h100-80gb-hbm3", name));
  const auto profiles = propose_profiles(read());
  const api::GpuProfile& whole = profiles[0];
  EXPECT_EQ(whole.offers.count, 8);
  EXPECT_EQ(whole.memory, 81559.0 * (1 << 20));
  EXPECT_EQ(whole.put.node_selector.at("nvidia.com/gpu.product"), "NVIDIA-H100-80GB-HBM3");
  const api::GpuProfile& slice = profiles[1];
  EXPECT_EQ(slice.sharing, api::GpuSharing::kMig);
  EXPECT_FALSE(slice.offers.count.has_value());
  EXPECT_EQ(slice.offers.fraction->step, 0.25);
  EXPECT_EQ(slice.offers.memory->max, 20096.0 * (1 << 20));
  EXPECT_EQ(slice.put.node_selector.at("nvidia.com/gpu.product"),
            "NVIDIA-H100-80GB-HBM3-MIG-1g.20gb");
  EXPECT_EQ(slice.put.limits.dump(), R"({"nvidia.com/gpu":1})");
}

TEST_F(GpusTest, ReplicasOfACardAreAPartOfItEach) {
  put_node(node("mps-1",
                R"({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED",
                    "nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.count": "2",
                    "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "mps"})",
                R"({"nvidia.com/gpu": "8"})"));
  put_node(node("slow-1",
                R"({"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360",
                    "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4",
                    "nvidia.com/gpu.sharing-strategy": "time-slicing"})",
                R"({"nvidia.com/gpu.shared": "4"})"));
  const GpuInventory inventory = read();
  EXPECT_THAT(inventory.notes, IsEmpty());
  EXPECT_THAT(proposed(inventory),
              ElementsAre("mps-nvidia-a100-sxm4-80gb", "time-slicing-tesla-t4"));
  const auto profiles = propose_profiles(inventory);
  EXPECT_EQ(profiles[0].put.node_selector.at("nvidia.com/gpu.sharing-strategy"), "mps");
  EXPECT_EQ(profiles[1].enforces, api::GpuEnforcement::kNothing);
  EXPECT_NE(profiles[1].put.limits.find("nvidia.com/gpu.shared"), nullptr);
}

// The scheduler uses the capacity, so it wins, and a note says so.
TEST_F(GpusTest, LabelsThatLieAreTold) {
  put_node(node("a", R"({"nvidia.com/gpu.count": "8"})", R"({"nvidia.com/gpu": "4"})"));
  put_node(node("b", R"({"nvidia.com/gpu.memory": "plenty"})", R"({"nvidia.com/gpu": "1"})"));
  put_node(node("c", R"({"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"})",
                R"({"nvidia.com/gpu": "4"})"));
  put_node(
      node("d", R"({"nvidia.com/gpu.sharing-strategy": "mps"})", R"({"nvidia.com/gpu": "1"})"));
  const GpuInventory inventory = read();
  EXPECT_THAT(
      inventory.notes,
      ElementsAre(HasSubstr("node a: its labels say 8 cards with 1 replicas each, its "
                            "capacity says 4; the capacity is believed"),
                  HasSubstr("node b: its label nvidia.com/gpu.memory is \"plenty\""),
                  HasSubstr("node c: its label nvidia.com/gpu.replicas is 4, but"),
                  HasSubstr("node d: its label nvidia.com/gpu.sharing-strategy is mps, but")));
  EXPECT_THAT(render_gpu_values(inventory), HasSubstr("# node a: its labels say"));
  proposed(inventory);
}

TEST_F(GpusTest, HamiKaiVolcanoAndOtherVendors) {
  put_node(node("hami-1", kH100, R"({"nvidia.com/gpu": "80"})",
                R"({"hami.io/node-nvidia-register": "GPU-1,10,81559,100,NVIDIA-H100,0,true:"})"));
  put_node(node("volcano-1", "{}", R"({"volcano.sh/vgpu-number": "10"})"));
  put_node(node("amd-1", "{}", R"({"amd.com/gpu": "8"})"));
  put_node(
      node("ali-1", R"({"nvidia.com/gpu.memory": "24576"})", R"({"aliyun.com/gpu-mem": "24"})"));
  answer("/apis/scheduling.run.ai");
  const GpuInventory inventory = read();
  EXPECT_THAT(inventory.notes, IsEmpty());
  EXPECT_THAT(proposed(inventory),
              ElementsAre("whole", "volcano", "hami-nvidia-h100-80gb-hbm3",
                          "hami-memory-nvidia-h100-80gb-hbm3", "kai", "aliyun"));
  EXPECT_THAT(render_gpus(inventory, "kubectl fettle", {}), HasSubstr("Also installed: KAI-Sch"));
  EXPECT_EQ(propose_profiles(inventory)[2].offers.count, 8) << "cards, which count as 10 each";
}

TEST_F(GpusTest, VolcanoGivesOutTheCardsThatThereAre) {
  put_node(node("volcano-1", kH100, R"({"volcano.sh/vgpu-number": "80"})"));
  ASSERT_THAT(proposed(read()), ElementsAre("volcano-nvidia-h100-80gb-hbm3"));
  EXPECT_EQ(propose_profiles(read())[0].offers.count, 8) << "cards, which count as 10 each";
}

TEST_F(GpusTest, KaiPromisesNoMemoryWhereThatOfSomeCardsIsNotKnown) {
  put_node(node("gpu-1", kH100, R"({"nvidia.com/gpu": "8"})"));
  answer("/apis/scheduling.run.ai");
  EXPECT_THAT(proposed(read()), ElementsAre("whole-nvidia-h100-80gb-hbm3", "kai", "kai-memory"));
  put_node(node("gpu-2", "{}", R"({"nvidia.com/gpu": "2"})"));
  EXPECT_THAT(proposed(read()), ElementsAre("whole", "whole-nvidia-h100-80gb-hbm3", "kai"));
}

TEST_F(GpusTest, DevicesThatCanBeClaimed) {
  server_.set({"resource.k8s.io", "v1", "deviceclasses", "DeviceClass"},
              json(R"({"metadata": {"name": "gpu.nvidia.com"}})"));
  server_.set({"resource.k8s.io", "v1", "deviceclasses", "DeviceClass"},
              json(R"({"metadata": {"name": "mig.nvidia.com"}})"));
  server_.set({"resource.k8s.io", "v1", "resourceslices", "ResourceSlice"}, json(R"({
      "metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n", "devices": [
        {"name": "gpu-0", "attributes": {"productName": {"string": "NVIDIA H100"}},
         "capacity": {"memory": {"value": "80Gi"}}},
        {"name": "gpu-1", "attributes": {"productName": {"string": "NVIDIA H100"}},
         "capacity": {"memory": {"value": "80Gi"}}},
        {"name": "gpu-2", "allowMultipleAllocations": true,
         "capacity": {"memory": {"value": "80Gi"}}},
        {"name": "mig-0", "attributes": {"profile": {"string": "1g.20gb"}},
         "consumesCounters": [{"counterSet": "c"}], "capacity": {"memory": {"value": "20Gi"}}}]}})"));
  const GpuInventory inventory = read();
  EXPECT_THAT(proposed(inventory), ElementsAre("dra-nvidia-h100", "dra-mig-1g-20gb", "dra-memory"));
  EXPECT_THAT(render_gpus(inventory, "kubectl fettle", {}), HasSubstr("MIG 1g.20gb, on demand"));
  EXPECT_EQ(propose_profiles(inventory)[0].offers.count, 2);
  EXPECT_THAT(api::write_gpu_profiles(propose_profiles(inventory)).dump(),
              HasSubstr("device.attributes['gpu.nvidia.com'].?profile.orValue('') == '1g.20gb'"));
  EXPECT_THAT(api::write_gpu_profiles(propose_profiles(inventory)).dump(),
              HasSubstr(".?productName.orValue('') == 'NVIDIA H100'"));
  EXPECT_THAT(propose_profiles(inventory)[0].models, ElementsAre("NVIDIA-H100"));
}

TEST_F(GpusTest, AClaimedMigDeviceIsAPartOfACardOfItsOwnModel) {
  const std::string driver = "gpu.nvidia.com";
  GpuInventory inventory;
  inventory.device_classes = {driver};
  const auto add = [&](const std::string& mig_profile, const std::string& model, int mib) {
    GpuDevices& devices = inventory.devices.emplace_back();
    devices.driver = driver;
    devices.mig_profile = mig_profile;
    devices.model = model;
    devices.mib = mib;
    devices.most_on_a_node = 1;
  };
  add("", "NVIDIA A100", 40960);
  add("", "NVIDIA H100", 81920);
  add("1g.10gb", "NVIDIA A100", 10240);
  EXPECT_THAT(proposed(inventory),
              ElementsAre("dra-nvidia-a100", "dra-nvidia-h100", "dra-mig-1g-10gb-nvidia-a100"));
  const api::GpuProfile slice = propose_profiles(inventory).back();
  EXPECT_EQ(slice.offers.fraction->step, 0.25);
  EXPECT_EQ(slice.memory, 40960.0 * (1 << 20));
}

TEST_F(GpusTest, NamesMissingRightsAndTheHiddenObjects) {
  put_node(node("gpu-1", kH100, R"({"nvidia.com/gpu": "8"})"));
  forbid("/api/v1/pods");
  forbid("/apis/resource.k8s.io/v1/resourceslices");
  const GpuInventory inventory = read();
  EXPECT_THAT(inventory.missing,
              ElementsAre("you may not list pods, so what is in use is not known",
                          "you may not list resourceslices, so devices that can be claimed are not "
                          "shown"));
  const std::string text = render_gpus(inventory, "kubectl fettle", {});
  EXPECT_THAT(text, HasSubstr("8     ?     ?"));
  EXPECT_THAT(text, HasSubstr("Missing right: you may not list pods"));
}

TEST_F(GpusTest, WithoutTheRightToReadNodesNothingIsClaimedOfThem) {
  put_node(node("gpu-1", kH100, R"({"nvidia.com/gpu": "8"})"));
  forbid("/api/v1/nodes");
  const GpuInventory inventory = read();
  EXPECT_THAT(render_gpus(inventory, "kubectl fettle", {}), HasSubstr("No GPUs were found."));
  EXPECT_THAT(render_gpus(inventory, "kubectl fettle", {}), HasSubstr("you may not list nodes"));
  EXPECT_THAT(render_gpu_values(inventory), HasSubstr("gpuProfiles: []"));
}

TEST_F(GpusTest, ProgramsGetEverything) {
  put_node(node("gpu-1", kH100, R"({"nvidia.com/gpu": "8"})"));
  const std::string text = gpus_json(read()).dump();
  EXPECT_THAT(text, HasSubstr(R"("memoryMiB":81559)"));
  EXPECT_THAT(text, HasSubstr(R"("nvidia.com/gpu":{"total":8,"used":0})"));
  EXPECT_THAT(text, HasSubstr(R"("gpuProfiles":[{"name":"whole-nvidia-h100-80gb-hbm3")"));
}

}  // namespace
}  // namespace fettle::cli
