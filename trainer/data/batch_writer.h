// BatchWriter: turns the pixels of chosen samples into the network's input: bytes scaled to [0, 1]
// (floats unchanged), normalised, in the network's type, flipped and shifted if the Study asks for
// it.
//
// From a text, it copies token ids and the labels that follow them.
//
// The augmentation of a sample is Philox(seed, epoch, index of the sample in its set): it depends
// on no worker, batch or restart. Immutable; safe to share between threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "kernels/aligned.h"
#include "kernels/backend.h"
#include "kernels/gather/reference.h"
#include "trainer/data/image_set.h"
#include "trainer/data/split.h"

namespace fettle::trainer {

// One micro-batch, ready for the network.
struct Batch {
  Indices indices;                             // of its samples in the ImageSet
  std::vector<std::int32_t> labels;            // one for each sample; of text one for each token
  kernels::AlignedArray<std::uint8_t> pixels;  // [samples, height, width, channels]; of text
                                               // std::int32_t ids, [samples, length]
  std::int64_t size() const { return std::ssize(indices); }
  // Whether its samples are only named, not written: the backend holds them.
  bool is_dealt() const { return !indices.empty() && labels.empty(); }
};

// Mean and standard deviation (biased; of bytes scaled to [0, 1]) over the chosen samples.
api::NormalizeConfig measure_pixels(const ImageSet& images, const Indices& samples);

class BatchWriter {
 public:
  BatchWriter(const api::NormalizeConfig& normalize, const api::AugmentConfig& augment,
              kernels::DataType type, std::uint64_t seed);

  const kernels::ImageLook& look() const { return look_; }

  // Makes room for `max_samples` of such images.
  Batch make_batch(const ImageSet& images, std::int64_t max_samples) const;

  // Fills `batch` with these samples as this epoch shows them.
  void write(const ImageSet& images, std::span<const std::int64_t> samples, std::int64_t epoch,
             Batch& batch) const;

 private:
  kernels::DataType type_;
  kernels::ImageLook look_;
  kernels::SampleWriter samples_;
};

}  // namespace fettle::trainer
