// The number of CUDA graphs of a step and of a validation, and the content of a step's graph: this
// program's calls of cudaGraphLaunch and cudaGraphInstantiate pass through here (CMakeLists.txt has
// the linker wrap them). On the emulated GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/cuda/operations.h"
#include "kernels/emulator/cuda_runtime.h"
#include "kernels/emulator/every_streams.h"
#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"

namespace {

int& launched() {
  static int count = 0;
  return count;
}

// The work of the newest graph.
std::vector<fettle::kernels::emulator::GraphWork>& made() {
  static std::vector<fettle::kernels::emulator::GraphWork> work;
  return work;
}

// Number of kernels that only compute a step's sums.
int& summed() {
  static int count = 0;
  return count;
}

}  // namespace

// The names are the linker's.
// NOLINTBEGIN
extern "C" {
cudaError_t __real__Z15cudaGraphLaunchP14CUgraphExec_stP11CUstream_st(cudaGraphExec_t graph,
                                                                      cudaStream_t stream);
cudaError_t __wrap__Z15cudaGraphLaunchP14CUgraphExec_stP11CUstream_st(cudaGraphExec_t graph,
                                                                      cudaStream_t stream) {
  ++launched();
  return __real__Z15cudaGraphLaunchP14CUgraphExec_stP11CUstream_st(graph, stream);
}
cudaError_t __real__Z20cudaGraphInstantiatePP14CUgraphExec_stP10CUgraph_sty(
    cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t __wrap__Z20cudaGraphInstantiatePP14CUgraphExec_stP10CUgraph_sty(
    cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  made() = fettle::kernels::emulator::work_of(graph);
  return __real__Z20cudaGraphInstantiatePP14CUgraphExec_stP10CUgraph_sty(executable, graph, flags);
}
void __real__ZN6fettle7kernels18cuda_add_step_sumsERNS0_4cuda6DeviceEPNS0_8LossSumsEPKNS0_9StepInputEPNS0_8StepSumsE(
    fettle::kernels::cuda::Device& device, fettle::kernels::LossSums* of_loss,
    const fettle::kernels::StepInput* input, fettle::kernels::StepSums* of_step);
void __wrap__ZN6fettle7kernels18cuda_add_step_sumsERNS0_4cuda6DeviceEPNS0_8LossSumsEPKNS0_9StepInputEPNS0_8StepSumsE(
    fettle::kernels::cuda::Device& device, fettle::kernels::LossSums* of_loss,
    const fettle::kernels::StepInput* input, fettle::kernels::StepSums* of_step) {
  ++summed();
  __real__ZN6fettle7kernels18cuda_add_step_sumsERNS0_4cuda6DeviceEPNS0_8LossSumsEPKNS0_9StepInputEPNS0_8StepSumsE(
      device, of_loss, input, of_step);
}
}
// NOLINTEND

namespace fettle::trainer {
namespace {

constexpr std::int64_t kHeld = 6;
constexpr std::int64_t kWarmUp = 4;  // each place of a batch is captured at its second use

// Two layers of each kind of product; all but the first have a gradient by their input.
std::vector<api::LayerConfig> layers_with_branches() {
  return {conv(3),   simple(api::LayerType::kRelu), conv(4),  simple(api::LayerType::kRelu),
          linear(8), simple(api::LayerType::kGelu), linear(4)};
}

class StepGraphTest : public testing::Test {
 protected:
  StepGraphTest() { make_learner({linear(8), simple(api::LayerType::kRelu), linear(4)}); }

  void make_learner(std::vector<api::LayerConfig> layers) {
    api::ModelConfig model;
    model.layers = std::move(layers);
    api::TrainingConfig config;
    config.global_batch = 4 * kHeld;
    learner_ = *Learner::create_on(*kernels::cuda_backend(), config,
                                   *plan_network(model, images_.shape(), images_.classes()),
                                   shape_of_step(config, kHeld), 4, single_);
  }

  // Makes a step of this many samples, in the fewest micro-batches.
  void step(std::int64_t samples) {
    for (std::int64_t begin = 0; begin < samples; begin += kHeld) {
      Indices some(static_cast<std::size_t>(std::min(kHeld, samples - begin)));
      std::iota(some.begin(), some.end(), begin);
      writer_.write(images_, some, 0, batch_);
      learner_->add(batch_, 0, begin + kHeld >= samples);
    }
    end_step(*learner_, 0.05);
  }
  int launches_of(const std::function<void()>& work) {
    const int before = launched();
    work();
    return launched() - before;
  }

  const ImageSet images_ = SyntheticImages(64).set();
  const BatchWriter writer_{{0.3, 0.2}, {}, kernels::DataType::kFloat32, 4};
  Batch batch_ = writer_.make_batch(images_, kHeld);
  SingleProcess single_;
  std::unique_ptr<Learner> learner_;
};

TEST_F(StepGraphTest, AStepOfOneMicroBatchIsOneGraph) {
  for (int i = 0; i < kWarmUp; ++i) step(kHeld);
  EXPECT_EQ(launches_of([this] { step(kHeld); }), 1);
}

TEST_F(StepGraphTest, TheLastMicroBatchOfAStepIsOneGraphWithItsEnd) {
  for (int i = 0; i < kWarmUp; ++i) step(3 * kHeld);
  EXPECT_EQ(launches_of([this] { step(3 * kHeld); }), 3);
}

TEST_F(StepGraphTest, TheLastLossOfAStepAlsoAddsTheStepsSums) {
  step(2 * kHeld);
  EXPECT_EQ(summed(), 0);
  Trace trace(0, 100);
  learner_->set_trace(&trace);
  while (!trace.is_on()) trace.begin_step();
  step(2 * kHeld);
  EXPECT_EQ(summed(), 1) << "where a step is not enqueued as one";
  learner_->set_trace(nullptr);
}

TEST_F(StepGraphTest, WithoutGraphsNothingIsLaunchedAndNoBitChanges) {
  std::vector<float> with_graphs;
  for (const char* graphs : {"1", "0"}) {
    ASSERT_EQ(setenv("FETTLE_CUDA_GRAPHS", graphs, 1), 0);
    make_learner(layers_with_branches());
    const int launches = launches_of([this] {
      for (int i = 0; i < 2 * kWarmUp; ++i) step(2 * kHeld - 1);
    });
    EXPECT_EQ(launches > 0, graphs == std::string("1"));
    const std::vector<float> weights = learner_->network().parameters().weights.download();
    if (with_graphs.empty()) with_graphs = weights;
    EXPECT_EQ(weights, with_graphs);
  }
  unsetenv("FETTLE_CUDA_GRAPHS");
}

TEST_F(StepGraphTest, AStepThatIsTracedIsNone) {
  for (int i = 0; i < kWarmUp; ++i) step(kHeld);
  Trace trace(0, 100);
  learner_->set_trace(&trace);
  while (!trace.is_on()) trace.begin_step();
  EXPECT_EQ(launches_of([this] { step(kHeld); }), 0);
  learner_->set_trace(nullptr);
}

TEST_F(StepGraphTest, AValidationLaunchesAGraphForEachWholeBatch) {
  Indices samples(4 * kHeld + 2);
  std::iota(samples.begin(), samples.end(), 0);
  const auto evaluate = [&] { return learner_->evaluate(images_, samples, writer_)->loss; };
  const double eager = evaluate();  // first use of each place, then captured
  double loss = 0;
  EXPECT_EQ(launches_of([&] { loss = evaluate(); }), 4) << "and the remainder as it is";
  EXPECT_EQ(loss, eager);
}

// ---- Branches ----------------------------------------------------------------------------------

using kernels::emulator::GraphWork;

// The work after which a branch is forked; nullopt: `work` does not begin a branch.
std::optional<std::size_t> forked_at(const std::vector<GraphWork>& graph, const GraphWork& work) {
  const auto at = std::ranges::find_if(
      work.after, [&](std::size_t before) { return !graph[before].of_branch; });
  if (!work.of_branch || at == work.after.end()) return std::nullopt;
  return *at;
}

bool is_join(const std::vector<GraphWork>& graph, const GraphWork& work) {
  return !work.of_branch && std::ranges::any_of(work.after, [&](std::size_t before) {
    return graph[before].of_branch;
  });
}

TEST_F(StepGraphTest, GradientsOfWeightsAreBranchesBesideThoseOfInputs) {
  ASSERT_EQ(setenv("FETTLE_CUDA_BRANCHES", "1", 1), 0);
  make_learner(layers_with_branches());
  unsetenv("FETTLE_CUDA_BRANCHES");
  for (int i = 0; i < kWarmUp; ++i) step(kHeld);
  const std::vector<GraphWork> graph = made();
  std::size_t forks = 0, joins = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (const auto fork = forked_at(graph, graph[i])) {
      ++forks;
      // The gradient by the input follows the same work, but not the branch.
      EXPECT_TRUE(std::ranges::any_of(graph, [&](const GraphWork& other) {
        return !other.of_branch && other.after == std::vector<std::size_t>{*fork};
      }));
    }
    if (is_join(graph, graph[i])) {
      ++joins;
      EXPECT_EQ(graph[i].after.size(), 2U) << "both branches";
    }
  }
  EXPECT_EQ(forks, 3U);
  EXPECT_EQ(joins, 3U);
}

TEST_F(StepGraphTest, BranchesChangeNoBit) {
  using kernels::emulator::Streams;
  std::vector<float> serial;
  for (const char* branches : {"0", "1"}) {
    for (const Streams streams : kernels::emulator::kEveryStreams) {
      kernels::emulator::set_streams(streams);
      ASSERT_EQ(setenv("FETTLE_CUDA_BRANCHES", branches, 1), 0);
      make_learner(layers_with_branches());
      for (int i = 0; i < 3 * kWarmUp; ++i) step(2 * kHeld - 1);
      const bool branched = std::ranges::any_of(made(), &GraphWork::of_branch);
      EXPECT_EQ(branched, branches == std::string("1"));
      const std::vector<float> weights = learner_->network().parameters().weights.download();
      if (serial.empty()) serial = weights;
      EXPECT_EQ(weights, serial) << branches << " " << kernels::emulator::name_of(streams);
    }
  }
  kernels::emulator::set_streams(Streams::kAtOnce);
  unsetenv("FETTLE_CUDA_BRANCHES");
}

}  // namespace
}  // namespace fettle::trainer
