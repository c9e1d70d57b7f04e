#include "trainer/files/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;
using testing::HasSubstr;
using Op = GraphOp;

NetworkPlan plan_of(std::vector<api::LayerConfig> layers, const SampleFormat& format) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  auto plan = plan_network(model, format);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

std::vector<Op> operations(const std::vector<api::LayerConfig>& layers,
                           const SampleFormat& format) {
  const auto graph = graph_of(plan_of(layers, format));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::vector<Op> all;
  for (const GraphStep& step : graph->steps) all.push_back(step.op);
  return all;
}

const SampleFormat kImages{{4, 4, 2}, 32, false, ""};
const SampleFormat kText{{6, 1, 1}, 11, true, "11 tokens"};

TEST(Graph, UnfusesLayersAndFlattens) {
  EXPECT_THAT(operations({conv(3), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                          simple(LayerType::kFlatten), dropout(0.5), linear(32)},
                         kImages),
              ElementsAre(Op::kConv, Op::kBatchNorm, Op::kRelu, Op::kFlatten, Op::kLinear));
}

TEST(Graph, KeepsTheTrainersOrderWhereItMatters) {
  EXPECT_THAT(operations({simple(LayerType::kLayerNorm), simple(LayerType::kFlatten)}, kImages),
              ElementsAre(Op::kChannelsLast, Op::kLayerNorm, Op::kChannelsFirst, Op::kChannelsLast,
                          Op::kFlatten));
}

TEST(Graph, AddsTheSumOfABlockOnce) {
  const NetworkPlan plan =
      plan_of({conv(2), simple(LayerType::kResidual), conv(2), simple(LayerType::kBatchNorm),
               simple(LayerType::kAdd), simple(LayerType::kRelu), simple(LayerType::kFlatten)},
              kImages);
  const auto graph = graph_of(plan);
  ASSERT_TRUE(graph.ok());
  ASSERT_EQ(graph->steps.size(), 7U);
  EXPECT_EQ(graph->steps[3].op, Op::kAdd);
  EXPECT_THAT(graph->steps[3].inputs, ElementsAre(3, 1));
  EXPECT_EQ(graph->steps[4].op, Op::kRelu);
}

TEST(Graph, OfATextRefusesLayersForImages) {
  EXPECT_THAT(
      operations({embedding(4), simple(LayerType::kLayerNorm), simple(LayerType::kHead)}, kText),
      ElementsAre(Op::kEmbedding, Op::kLayerNorm, Op::kHead));
  const auto graph = graph_of(plan_of({embedding(4), conv(4), simple(LayerType::kHead)}, kText));
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().message, HasSubstr("model.layers[1] (conv) cannot be exported"));
}

}  // namespace
}  // namespace fettle::trainer
