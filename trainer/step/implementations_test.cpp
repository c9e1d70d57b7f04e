// Implementations in reports, also for a whole training on the emulated GPU, where all kernels are
// our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "trainer/model/layer_configs.h"
#include "trainer/step/device_metrics.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

LayerImplementation by(const std::string& layer, const std::string& pass, const std::string& who,
                       const std::string& fused = "", const std::string& reason = "") {
  return {layer, {"an operation of " + layer, pass, who, fused, reason}};
}

TEST(Implementations, GroupLayersByWhoDoesTheirPasses) {
  const std::vector<LayerImplementation> all = {
      by("conv1", "forward", "cuDNN", "bias"),
      by("conv1", "backward", "own", "", "no plan"),
      by("conv2", "forward", "cuDNN", "bias"),
      by("conv2", "backward", "cuDNN"),
      by("conv3", "forward", "cuDNN"),
      by("conv3", "backward", "own", "", "no plan"),
      by("conv4", "backward", "own", "", "no memory"),
  };
  EXPECT_EQ(to_json(all).dump(),
            R"([{"pass":"forward","by":"cuDNN","fused":"bias","layers":["conv1","conv2"]},)"
            R"({"pass":"backward","by":"own","reason":"no plan","layers":["conv1","conv3"]},)"
            R"({"pass":"backward","by":"cuDNN","layers":["conv2"]},)"
            R"({"pass":"forward","by":"cuDNN","layers":["conv3"]},)"
            R"({"pass":"backward","by":"own","reason":"no memory","layers":["conv4"]}])");
  EXPECT_EQ(fallbacks(all), 3);
  EXPECT_EQ(to_json(std::vector<LayerImplementation>{}).dump(), "[]");
  EXPECT_EQ(fallbacks({}), 0);
}

// The report lines of a training of two epochs.
std::vector<std::string> lines_on(std::unique_ptr<kernels::Backend> backend) {
  TrainingData data;
  data.images = SyntheticImages(30).set();
  for (std::int64_t i = 0; i < 30; ++i) {
    (i < 20 ? data.split.train : data.split.validation).push_back(i);
  }
  TrainingTask task;
  // Two layers of one shape: both must be named.
  task.config.model.layers = {linear(64), linear(64), simple(api::LayerType::kRelu), linear(4)};
  task.config.training.global_batch = 10;
  task.config.training.epochs = task.until_epoch = 2;
  std::vector<std::string> lines;
  SingleProcess single;
  TrainingHooks hooks;
  hooks.report = [&](const EpochReport& report) { lines.push_back(to_line(report)); };
  hooks.log = [](const std::string&) {};
  hooks.should_stop = [] { return false; };
  const auto training = Training::create_on(std::move(backend), task, data, single, hooks);
  EXPECT_TRUE(training.ok() && (*training)->run().ok());
  return lines;
}

TEST(Implementations, AreSaidOnTheFirstLineOfARunOnAGpu) {
  const std::vector<std::string> lines = lines_on(*kernels::cuda_backend());
  ASSERT_EQ(lines.size(), 2U);
  const std::string layers = R"j("layers":["model.layers[0] (linear)",)j"
                             R"j("model.layers[1] (linear)","model.layers[3] (linear)"]})j";
  EXPECT_THAT(lines[0], HasSubstr(R"("fallbacks": 0, "implementations": [)"
                                  R"({"pass":"forward","by":"own",)" +
                                  layers + R"(,{"pass":"backward","by":"own",)" + layers + "]"));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("fallbacks"), Not(HasSubstr("implementations"))));
  EXPECT_TRUE(parse_json(lines[0]).ok());
}

TEST(Implementations, AreNotSaidWhereThereIsOneOnly) {
  for (const std::string& line : lines_on(*kernels::make_backend("reference", 1))) {
    EXPECT_THAT(line, AllOf(Not(HasSubstr("fallbacks")), Not(HasSubstr("implementations"))));
  }
}

}  // namespace
}  // namespace fettle::trainer
