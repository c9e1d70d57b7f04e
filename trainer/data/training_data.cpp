#include "trainer/data/training_data.h"

#include <utility>

#include "trainer/data/batch_writer.h"
#include "trainer/data/npy.h"
#include "trainer/data/text.h"

namespace fettle::trainer {

namespace {

Result<ImageSet> read_images(const std::string& format, const std::string& images,
                             const std::string& labels, DataCache& cache) {
  if (format == "idx") return read_image_set(images, labels, cache);
  if (format == "npy") return read_npy_image_set(images, labels, cache);
  return invalid("data.format is \"" + format +
                 "\"; this fettle-trainer reads idx, npy, text and tokens");
}

Result<std::optional<ImageSet>> read_test_set(const api::DataConfig& config, const ImageSet& train,
                                              DataCache& cache) {
  if (config.test_images.empty() != config.test_labels.empty()) {
    return invalid("data: testImages and testLabels belong together; give both or neither");
  }
  if (config.test_images.empty()) return std::optional<ImageSet>();
  FETTLE_ASSIGN(ImageSet test,
                read_images(config.format, config.test_images, config.test_labels, cache));
  if (test.pixel_type() != train.pixel_type()) {
    return invalid(config.test_images + " and " + config.train_images +
                   " hold numbers of different types; they must be alike");
  }
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

Result<Text> read_train_text(const api::DataConfig& config, DataCache& cache) {
  if (config.format == "text") return read_characters(config.train_text, cache);
  return read_tokens(config.train_text, config.vocabulary.value_or(0), cache);
}

// Reads the test text with the tokens of the training text.
Result<Text> read_test_text(const api::DataConfig& config, const Text& train, DataCache& cache) {
  if (config.format == "text") return read_characters(config.test_text, cache, &train);
  return read_tokens(config.test_text, train.vocabulary, cache);
}

Result<TrainingData> load_text(const api::DataConfig& config, DataCache& cache) {
  if (!config.context) return invalid("data.context is missing; say how many tokens a sample has");
  TrainingData data;
  FETTLE_ASSIGN(const Text text, read_train_text(config, cache));
  FETTLE_ASSIGN(data.images, cut_text(text, *config.context, config.train_text));
  data.vocabulary = describe_vocabulary(text);
  FETTLE_ASSIGN(data.split, split_text(data.images.size(), config));
  if (config.test_text.empty()) return data;
  FETTLE_ASSIGN(const Text test, read_test_text(config, text, cache));
  FETTLE_ASSIGN(data.test, cut_text(test, *config.context, config.test_text));
  return data;
}

Result<TrainingData> load_images(const api::DataConfig& config, DataCache& cache) {
  TrainingData data;
  FETTLE_ASSIGN(data.images,
                read_images(config.format, config.train_images, config.train_labels, cache));
  FETTLE_ASSIGN(data.split, split_samples(data.images.size(), config));
  FETTLE_ASSIGN(data.test, read_test_set(config, data.images, cache));
  data.normalize =
      config.normalize ? *config.normalize : measure_pixels(data.images, data.split.train);
  return data;
}

}  // namespace

SampleFormat TrainingData::format() const {
  return {images.shape(), images.classes(), images.pixel_type() == PixelType::kToken, vocabulary};
}

std::string to_string(const kernels::ImageShape& shape) {
  return std::to_string(shape.height) + "×" + std::to_string(shape.width) + "×" +
         std::to_string(shape.channels);
}

Result<TrainingData> load_training_data(const api::DataConfig& config, DataCache& cache) {
  FETTLE_ASSIGN(TrainingData data,
                is_text(config) ? load_text(config, cache) : load_images(config, cache));
  for (const MappedFile& file : cache.mapped()) {
    const bool of_test = data.test && file.holds(data.test->samples().pixels);
    if (of_test || file.holds(data.images.samples().pixels)) data.files.push_back(file);
  }
  data.fingerprint = fingerprint_of(data.images, data.normalize, data.test ? &*data.test : nullptr);
  return data;
}

Status check_unchanged(const TrainingData& data, std::vector<MappedFile>& files) {
  std::string changed;
  bool whole = true;  // reading a truncated mapping would end the process
  for (const MappedFile& file : files) {
    const std::string change = file.change();
    if (change.empty()) continue;
    whole = whole && file.is_whole();
    changed += (changed.empty() ? "" : ", ") + file.path() + " " + change;
  }
  if (changed.empty()) return success();
  const auto now = [&data] {
    return fingerprint_of(data.images, data.normalize, data.test ? &*data.test : nullptr);
  };
  if (whole && now() == data.fingerprint) {
    for (MappedFile& file : files) file.accept();
    return success();
  }
  return io_error(changed +
                  " while it was trained on; put a new file in its place (rename) instead of "
                  "writing into the old one");
}

}  // namespace fettle::trainer
