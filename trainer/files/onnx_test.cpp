// The wire format and refusals; tests/interop compares logits in onnxruntime.
#include "trainer/files/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/files/protobuf.h"
#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

// The examples of https://protobuf.dev/programming-guides/encoding.
TEST(ProtobufWriter, WritesFieldsAsDocumented) {
  EXPECT_EQ(ProtobufWriter().integer(1, 150).take(), "\x08\x96\x01");
  EXPECT_EQ(ProtobufWriter().integer(1, -2).take(), "\x08\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
  EXPECT_EQ(ProtobufWriter().bytes(2, "testing").take(), "\x12\x07testing");
  EXPECT_EQ(ProtobufWriter().message(3, ProtobufWriter().integer(1, 150)).take(),
            "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtobufWriter().real(2, 1).take(), std::string("\x15\0\0\x80\x3f", 5));
  const std::vector<std::int64_t> values = {3, 270};
  EXPECT_EQ(ProtobufWriter().integers(4, values).take(), "\x20\x03\x20\x8e\x02");
  EXPECT_EQ(ProtobufWriter().integer(16, 1).take(), "\x80\x01\x01");
}

SavedModel model_of(std::vector<api::LayerConfig> layers, const SampleFormat& format) {
  SavedModel model;
  model.format = format;
  model.config.model.layers = std::move(layers);
  auto plan = plan_network(model.config.model, format);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  model.plan = *std::move(plan);
  return model;
}

TEST(OnnxModel, HoldsItsWeightsAndItsDescription) {
  SavedModel model = model_of({linear(3)}, {{1, 1, 2}, 3, false, ""});
  model.weights.assign(static_cast<std::size_t>(model.plan.parameters), 0.5F);
  const auto file = onnx_model(model, "9.8.7", R"({"step":4})");
  ASSERT_TRUE(file.ok()) << file.error().message;
  for (const char* part : {"fettle", "9.8.7", R"({"step":4})", "layers.0.weight", "layers.0.bias",
                           "Gemm", "batch", "logits"}) {
    EXPECT_THAT(*file, HasSubstr(part));
  }
}

TEST(OnnxModel, RefusesWhatAFileCannotHold) {
  const SavedModel large = model_of({linear(20'000'000), linear(3)}, {{1, 1, 30}, 3, false, ""});
  EXPECT_THAT(onnx_model(large, "", "").error().message,
              HasSubstr("MiB, and an ONNX file holds at most 2048; export them as safetensors"));
}

TEST(OnnxModel, RefusesATextWithLayersForImages) {
  const SavedModel model =
      model_of({embedding(4), conv(4), simple(api::LayerType::kHead)}, {{6, 1, 1}, 11, true, ""});
  EXPECT_THAT(onnx_model(model, "", "").error().message,
              HasSubstr("model.layers[1] (conv) cannot be exported"));
}

}  // namespace
}  // namespace fettle::trainer
