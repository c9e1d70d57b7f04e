// ImageSet: labelled images of one size, as bytes or floats, or the pieces of a text (text.h); and
// the reader of IDX files (the format of MNIST and its relatives:
// http://yann.lecun.com/exdb/mnist).
//
// A piece of a text is an image of one column, whose pixels are token ids; the label of each token
// is the next token.
// Invariant: every label is below classes(); there are as many labels as images (tokens).
// Immutable; safe to share between threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/data/bytes.h"
#include "trainer/data/cache.h"

namespace fettle::trainer {

using kernels::PixelType;

class ImageSet {
 public:
  ImageSet() = default;
  // `pixels`: count x height x width x channels; `labels`: one byte for each image. For data made
  // in memory; both must fit (CHECK).
  ImageSet(kernels::ImageShape shape, Bytes pixels, const Bytes& labels);
  // The same for pixels of either type; floats must be aligned. No label is negative.
  ImageSet(kernels::ImageShape shape, PixelType type, Bytes pixels,
           std::vector<std::int32_t> labels);
  // A text of `tokens` (std::uint16_t, all below `classes`) in pieces of `length`; a remainder
  // shorter than a piece is dropped. At least length + 1 tokens.
  static ImageSet of_text(Bytes tokens, std::int64_t length, std::int64_t classes);

  // Tells sets apart whose samples may differ: each set that is made has its own; a copy keeps it.
  // 0 = an empty set.
  std::uint64_t serial() const { return serial_; }

  std::int64_t size() const { return size_; }
  std::int64_t classes() const { return classes_; }
  const kernels::ImageShape& shape() const { return shape_; }
  PixelType pixel_type() const { return type_; }
  // The pixels of image i, in the type of pixel_type(): std::uint8_t, float or (tokens)
  // std::uint16_t.
  template <class Pixel>
  const Pixel* pixels(std::int64_t i) const {
    return reinterpret_cast<const Pixel*>(pixels_.view().data()) + i * shape_.size();
  }
  const std::uint8_t* image(std::int64_t i) const { return pixels<std::uint8_t>(i); }
  // Size of all pixels; for a text including the token after the last piece.
  std::int64_t pixel_bytes() const;
  // Size of all pixels and labels.
  std::int64_t bytes() const;
  // All samples, in the form that kernels take.
  kernels::Samples samples() const {
    return {type_, shape_, pixels_.view().data(), labels_.empty() ? nullptr : labels_.data()};
  }
  // For images only.
  std::int32_t label(std::int64_t i) const { return labels_[static_cast<std::size_t>(i)]; }

 private:
  std::uint64_t serial_ = 0;
  kernels::ImageShape shape_;
  PixelType type_ = PixelType::kByte;
  Bytes pixels_;
  std::vector<std::int32_t> labels_;  // empty for a text, whose tokens are its labels
  std::int64_t size_ = 0;
  std::int64_t classes_ = 0;
};

// Reads a pair of IDX files, plain or gzipped. Images are bytes with dimensions [n, height, width]
// or [n, height, width, channels]; labels are bytes with dimensions [n].
// Errors name the file, what was found and what was expected: missing, another magic, another
// number of dimensions, truncated or too long, counts that differ.
Result<ImageSet> read_image_set(const std::string& images, const std::string& labels,
                                DataCache& cache);

// Errors: images with channels first, as in PyTorch. `sides`: [n, height, width, channels].
Status refuse_channels_first(std::span<const std::int64_t> sides, const std::string& path);

}  // namespace fettle::trainer
