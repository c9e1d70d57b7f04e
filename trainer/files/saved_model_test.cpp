#include "trainer/files/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

class SavedModelTest : public testing::Test {
 protected:
  SavedModelTest() {
    task_.config.data = write_synthetic(directory_, 80);
    task_.config.model.layers = {conv(2), simple(api::LayerType::kBatchNorm), linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.epochs = 1;
  }

  Checkpoint train() {
    DataCache off("");
    const auto data = load_training_data(task_.config.data, off);
    EXPECT_TRUE(data.ok()) << data.error().message;
    normalize_ = data->normalize;
    SingleProcess single;
    TrainingHooks hooks;
    hooks.report = [](const EpochReport&) {};
    hooks.log = [](const std::string&) {};
    hooks.should_stop = [] { return false; };
    auto training = Training::create(task_, *data, single, hooks);
    EXPECT_TRUE(training.ok()) << training.error().message;
    EXPECT_TRUE((*training)->run().ok());
    return *(*training)->snapshot();
  }

  void expect_error(Checkpoint checkpoint, const std::string& words) {
    const auto model = read_saved_model(std::move(checkpoint), "a.checkpoint");
    ASSERT_FALSE(model.ok()) << words;
    EXPECT_THAT(model.error().message, HasSubstr("a.checkpoint"));
    EXPECT_THAT(model.error().message, HasSubstr(words));
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
  api::NormalizeConfig normalize_;
};

TEST_F(SavedModelTest, IsDescribedByItsCheckpointAlone) {
  const Checkpoint checkpoint = train();
  const auto model = read_saved_model(checkpoint, "a.checkpoint");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->format.input, (kernels::ImageShape{8, 8, 1}));
  EXPECT_EQ(model->format.classes, 4);
  EXPECT_EQ(model->pixels, PixelType::kByte);
  EXPECT_EQ(model->normalize.mean, static_cast<float>(normalize_.mean));
  EXPECT_EQ(model->normalize.std, static_cast<float>(normalize_.std));
  EXPECT_EQ(model->config.model, task_.config.model);
  EXPECT_EQ(model->weights, checkpoint.weights);
  EXPECT_EQ(model->statistics, checkpoint.statistics);
  EXPECT_EQ(model->position.epoch, 1);
}

TEST_F(SavedModelTest, OfATextHasItsVocabulary) {
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    const std::string path = directory_.file("text");
    ASSERT_TRUE(write_file(path, "to be or not to be, that is the question: to be").ok());
    task_.config = {};
    task_.config.data.format = "text";
    task_.config.data.train_text = path;
    task_.config.data.context = 4;
    task_.config.model.gpt = api::GptConfig{.layers = 1, .heads = 2, .width = 8};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.precision = precision;
    task_.config.training.residual_in_fp32 = precision == api::Precision::kBf16;
    task_.config.training.epochs = 1;
    const auto model = read_saved_model(train(), "a.checkpoint");
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_TRUE(model->format.tokens);
    EXPECT_EQ(model->format.input, (kernels::ImageShape{4, 1, 1}));
    EXPECT_THAT(model->format.vocabulary, HasSubstr("15 characters 202c3a61"));
    for (const LayerPlan& layer : model->plan.layers) {
      EXPECT_NE(layer.type, api::LayerType::kCast);
    }
  }
}

TEST_F(SavedModelTest, RefusesWhatDoesNotBelongTogether) {
  const Checkpoint good = train();
  Checkpoint early = good;
  early.data = Json();
  expect_error(early, "does not describe its samples");
  Checkpoint odd = good;
  odd.data = *parse_json(R"({"train": {"shape": "8×8", "type": "uint8", "classes": 4}})");
  expect_error(odd, "does not describe its samples");
  Checkpoint later = good;
  later.settings.set("shape", "round");
  expect_error(later, "shape");
  Checkpoint other = good;
  other.layout += "relu; ";
  expect_error(other, "has other layers than its settings describe");
  Checkpoint shorter = good;
  shorter.weights.pop_back();
  expect_error(shorter, "has other layers");
}

}  // namespace
}  // namespace fettle::trainer
