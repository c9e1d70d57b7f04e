// cuDNN has plans for an H100 and an H200 for the convolutions of the networks that Fettle trains,
// in every type and pass, on a machine without a GPU.
//
// The two descriptions in kernels/testdata/devices/ are handwritten: the fields that cuDNN
// serialises, with NVIDIA's published numbers. The test omits plans that cuDNN cannot make without
// a driver: attention, and engines that it compiles at run time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/test_paths.h"
#include "kernels/cuda/libraries/cudnn.h"

namespace fettle::kernels::cuda {
namespace {

std::unique_ptr<Cudnn> device_named(const std::string& name) {
  std::ifstream file(source_path("kernels/testdata/devices/" + name + ".json"));
  std::stringstream text;
  text << file.rdbuf();
  auto made = Cudnn::described(text.str());
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return std::move(made).value();
}

struct Case {
  const char* what;
  std::int64_t samples;
  ConvShape shape;
};

// {height, width, channels}, channels, kernel, stride, padding.
const Case kCases[] = {
    {"CNN, first", 128, {{28, 28, 1}, 32, 3, 1, 1, true, true}},
    {"CNN, second", 128, {{14, 14, 32}, 64, 3, 1, 1, true, true}},
    {"CNN with batch norm, 5 x 5", 128, {{28, 28, 1}, 16, 5, 1, 2, true, false}},
    {"ResNet-9, first", 512, {{32, 32, 3}, 64, 3, 1, 1, false, false}},
    {"ResNet-9, middle", 512, {{16, 16, 128}, 256, 3, 1, 1, false, false}},
    {"ResNet-50, stem", 64, {{224, 224, 3}, 64, 7, 2, 3, false, false}},
    {"ResNet-50, 1 x 1", 64, {{56, 56, 64}, 256, 1, 1, 0, false, false}},
    {"ResNet-50, stride 2", 64, {{56, 56, 128}, 128, 3, 2, 1, false, false}},
    {"the last batch of an epoch", 37, {{16, 16, 128}, 256, 3, 1, 1, false, false}},
    {"odd channels", 7, {{10, 9, 17}, 17, 3, 2, 1, true, true}},
};

class Plans : public ::testing::TestWithParam<const char*> {};

TEST_P(Plans, EveryPassOfEveryConvolutionHasOne) {
  const std::unique_ptr<Cudnn> cudnn = device_named(GetParam());
  for (const Case& c : kCases) {
    for (const DataType type : {DataType::kBFloat16, DataType::kFloat16, DataType::kFloat32}) {
      for (const ConvPass pass : {ConvPass::kForward, ConvPass::kInput, ConvPass::kWeights}) {
        const auto plan = plan_conv(*cudnn, c.shape, {c.samples, type}, c.samples, pass);
        EXPECT_TRUE(plan.ok()) << c.what << ", pass " << static_cast<int>(pass) << ", type "
                               << static_cast<int>(type) << ": " << plan.error().message;
      }
    }
  }
}

TEST_P(Plans, BiasAndReluAreFusedInBFloat16) {
  const std::unique_ptr<Cudnn> cudnn = device_named(GetParam());
  for (const Case& c : kCases) {
    if (!c.shape.bias || !c.shape.relu) continue;
    const auto plan = plan_conv(*cudnn, c.shape, {c.samples, DataType::kBFloat16}, c.samples,
                                ConvPass::kForwardFused);
    EXPECT_TRUE(plan.ok()) << c.what << ": " << plan.error().message;
  }
}

TEST_P(Plans, AreMadeOnceForAllLayersThatDoTheSame) {
  const std::unique_ptr<Cudnn> cudnn = device_named(GetParam());
  const ConvShape plain{{16, 16, 128}, 256, 3, 1, 1, false, false};
  ConvShape fused = plain, wider = plain, strided = plain;
  fused.bias = fused.relu = true;
  wider.channels = 512;
  strided.stride = 2;
  const PlanOptions options{64, DataType::kBFloat16};
  const auto kept_after = [&](const ConvShape& shape, std::int64_t samples, ConvPass pass) {
    EXPECT_TRUE(plan_conv(*cudnn, shape, options, samples, pass).ok());
    return cudnn->plans_kept();
  };
  EXPECT_EQ(kept_after(plain, 64, ConvPass::kInput), 1U);
  EXPECT_EQ(kept_after(plain, 64, ConvPass::kInput), 1U);
  EXPECT_EQ(kept_after(fused, 64, ConvPass::kInput), 1U);  // only forward fuses them
  EXPECT_EQ(kept_after(plain, 63, ConvPass::kInput), 2U);
  EXPECT_EQ(kept_after(plain, 64, ConvPass::kWeights), 3U);
  EXPECT_EQ(kept_after(wider, 64, ConvPass::kInput), 4U);
  EXPECT_EQ(kept_after(strided, 64, ConvPass::kInput), 5U);
  EXPECT_EQ(kept_after(plain, 64, ConvPass::kForward), 6U);
  EXPECT_EQ(kept_after(fused, 64, ConvPass::kForwardFused), 7U);
}

// TF32 is a different arithmetic, used only on request.
TEST_P(Plans, Float32IsNotTf32UnlessAskedFor) {
  const std::unique_ptr<Cudnn> cudnn = device_named(GetParam());
  const ConvShape shape{{16, 16, 128}, 256, 3, 1, 1, false, false};
  const auto exact = plan_conv(*cudnn, shape, {64, DataType::kFloat32}, 64, ConvPass::kForward);
  const auto tf32 =
      plan_conv(*cudnn, shape, {64, DataType::kFloat32, /*tf32=*/true}, 64, ConvPass::kForward);
  ASSERT_TRUE(exact.ok() && tf32.ok());
  EXPECT_NE(exact.value().name(), tf32.value().name());
}

// A missing driver does not mean a missing plan: nothing falls back because of it.
TEST_P(Plans, AnImpossiblePlanIsAnErrorInWords) {
  const std::unique_ptr<Cudnn> cudnn = device_named(GetParam());
  const auto plan =
      plan_attention(*cudnn, {256, 6, 64}, DataType::kBFloat16, 64, AttentionPass::kForward);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kIo);
  EXPECT_THAT(plan.error().message,
              ::testing::HasSubstr("could not plan attention of 256 tokens, 6 heads of 64, 64 "
                                   "samples, bf16: "));
  EXPECT_THAT(plan.error().message, ::testing::HasSubstr("driver"));
}

INSTANTIATE_TEST_SUITE_P(Cudnn, Plans, ::testing::Values("h100", "h200"),
                         [](const auto& instance) { return std::string(instance.param); });

// Uses the names of cuDNN 9.
TEST(Cudnn, TellsAMissingLibraryFromAMissingPlan) {
  EXPECT_TRUE(names_another_cause("CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"));
  EXPECT_TRUE(names_another_cause("error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"));
  EXPECT_TRUE(names_another_cause("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"));
  EXPECT_FALSE(names_another_cause("CUDNN_STATUS_NOT_SUPPORTED_SHAPE"));
  EXPECT_FALSE(names_another_cause("No execution plans support the graph."));
}

TEST(Cudnn, RefusesADescriptionThatIsNone) {
  const auto made = Cudnn::described("{\"deviceName\": 1");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("description of a device"));
}

}  // namespace
}  // namespace fettle::kernels::cuda
