// TrainingData: the images, or the text, a trial trains on, is judged on and is tested on.
// Immutable once loaded; safe to share between threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/trainer_config.h"
#include "base/result.h"
#include "trainer/data/cache.h"
#include "trainer/data/fingerprint.h"
#include "trainer/data/image_set.h"
#include "trainer/data/sample_format.h"
#include "trainer/data/split.h"

namespace fettle::trainer {

struct TrainingData {
  ImageSet images;         // training and validation samples, told apart by `split`
  std::string vocabulary;  // of text: which token is which
  Split split;
  api::NormalizeConfig normalize;  // given, or measured on the training samples
  std::optional<ImageSet> test;
  std::vector<MappedFile> files;  // that samples are read from while they are trained on
  DataFingerprint fingerprint;    // not known where the data were made in memory

  SampleFormat format() const;
};

// Errors: those of read_image_set, read_npy_image_set, text.h and split.h; test images of another
// size or type or with labels that the training data do not have; test images without labels or the
// other way round.
Result<TrainingData> load_training_data(const api::DataConfig& config, DataCache& cache);

// Whether the files of the samples are as they were when these were loaded. Those that were written
// to with the same content are taken for unchanged from now on. Errors: kIo: they changed.
Status check_unchanged(const TrainingData& data, std::vector<MappedFile>& files);

// "28×28×1": height, width, channels.
std::string to_string(const kernels::ImageShape& shape);

}  // namespace fettle::trainer
