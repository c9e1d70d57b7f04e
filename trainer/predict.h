// Predicts with a trained network: its logits for samples, in fp32.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/data/cache.h"
#include "trainer/data/image_set.h"
#include "trainer/data/split.h"
#include "trainer/files/saved_model.h"

namespace fettle::trainer {

struct Predictions {
  std::vector<std::int64_t> shape;  // [samples, classes]; of a text [samples, length, classes]
  std::vector<float> logits;        // in the order of the samples
  kernels::LossSums sums;           // against the samples' labels
};

// Predicts these samples of `inputs` on the backend that `where` names. Errors: samples of another
// form than the network was trained on; the backend is not available; too little memory.
Result<Predictions> predict(const SavedModel& model, const api::TrainingConfig& where,
                            const ImageSet& inputs, const Indices& samples);

// Samples without labels, by numpy.save: images as data.format npy has them, or token ids of shape
// [samples, length]. Errors name the file: it is not by numpy.save; samples of another form than
// the network was trained on.
Result<ImageSet> read_inputs(const SavedModel& model, const std::string& path, DataCache& cache);

}  // namespace fettle::trainer
