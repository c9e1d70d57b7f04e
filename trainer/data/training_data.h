// TrainingData: the images, or the text, of a trial's training, validation and test.
// Immutable once loaded; safe to share between threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/data/cache.h"
#include "trainer/data/fingerprint.h"
#include "trainer/data/image_set.h"
#include "trainer/data/sample_format.h"
#include "trainer/data/split.h"

namespace fettle::trainer {

struct TrainingData {
  ImageSet images;         // training and validation samples, separated by `split`
  std::string vocabulary;  // of text: the ids of tokens
  Split split;
  api::NormalizeConfig normalize;  // given, or measured on the training samples
  std::optional<ImageSet> test;
  std::vector<MappedFile> files;  // mapped files that samples are read from during training
  DataFingerprint fingerprint;    // unknown for data made in memory

  SampleFormat format() const;
};

// Errors: those of read_image_set, read_npy_image_set, text.h and split.h; test images of another
// size or type or with labels that the training data lack; test images without labels or test
// labels without images.
Result<TrainingData> load_training_data(const api::DataConfig& config, DataCache& cache);

// Checks that the samples' files have not changed since they were loaded. Files rewritten with the
// same content count as unchanged from now on. Errors: kIo: they changed.
Status check_unchanged(const TrainingData& data, std::vector<MappedFile>& files);

// "28×28×1": height, width, channels.
std::string to_string(const kernels::ImageShape& shape);

}  // namespace fettle::trainer
