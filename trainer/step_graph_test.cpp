// How many CUDA graphs a step and a validation take: every cudaGraphLaunch of this program is
// counted (CMakeLists.txt has the linker wrap it). On the emulated GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/emulator/cuda_runtime.h"
#include "trainer/learner.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"

namespace {

int& launched() {
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
}
// NOLINTEND

namespace fettle::trainer {
namespace {

constexpr std::int64_t kHeld = 6;
constexpr std::int64_t kWarmUp = 4;  // each place of a batch is captured when it is met again

class StepGraphTest : public testing::Test {
 protected:
  StepGraphTest() {
    api::ModelConfig model;
    model.layers = {linear(8), simple(api::LayerType::kRelu), linear(4)};
    api::TrainingConfig config;
    config.global_batch = 4 * kHeld;
    learner_ = *Learner::create_on(*kernels::cuda_backend(), config,
                                   *plan_network(model, images_.shape(), images_.classes()), kHeld,
                                   4, single_);
  }

  // A step of so many samples, in the fewest micro-batches.
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
  const double eager = evaluate();  // each place of a batch for the first time, then captured
  double loss = 0;
  EXPECT_EQ(launches_of([&] { loss = evaluate(); }), 4) << "and the remainder as it is";
  EXPECT_EQ(loss, eager);
}

}  // namespace
}  // namespace fettle::trainer
