#include "trainer/data/training_data.h"

#include <utility>

#include "trainer/data/batch_writer.h"

namespace fettle::trainer {

namespace {

Result<std::optional<ImageSet>> read_test_set(const api::DataConfig& config, const ImageSet& train,
                                              DataCache& cache) {
  if (config.test_images.empty() != config.test_labels.empty()) {
    return invalid("data: testImages and testLabels belong together; give both or neither");
  }
  if (config.test_images.empty()) return std::optional<ImageSet>();
  FETTLE_ASSIGN(ImageSet test, read_image_set(config.test_images, config.test_labels, cache));
  if (test.shape() != train.shape()) {
    return invalid(config.test_images + " has images of " + to_string(test.shape()) + ", but " +
                   config.train_images + " has " + to_string(train.shape()) +
                   "; they must be alike");
  }
  if (test.classes() > train.classes()) {
    return invalid(config.test_labels + " has the label " + std::to_string(test.classes() - 1) +
                   "; the labels in " + config.train_labels + " end at " +
                   std::to_string(train.classes() - 1));
  }
  return std::optional<ImageSet>(std::move(test));
}

}  // namespace

std::string to_string(const kernels::ImageShape& shape) {
  return std::to_string(shape.height) + "×" + std::to_string(shape.width) + "×" +
         std::to_string(shape.channels);
}

Result<TrainingData> load_training_data(const api::DataConfig& config, DataCache& cache) {
  if (config.format != "idx") {
    return invalid("data.format is \"" + config.format + "\"; this fettle-trainer reads idx");
  }
  TrainingData data;
  FETTLE_ASSIGN(data.images, read_image_set(config.train_images, config.train_labels, cache));
  FETTLE_ASSIGN(data.split, split_samples(data.images.size(), config));
  FETTLE_ASSIGN(data.test, read_test_set(config, data.images, cache));
  data.normalize =
      config.normalize ? *config.normalize : measure_pixels(data.images, data.split.train);
  return data;
}

}  // namespace fettle::trainer
