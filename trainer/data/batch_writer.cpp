#include "trainer/data/batch_writer.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "kernels/cast/loops.h"

namespace fettle::trainer {

namespace {

constexpr std::uint64_t kAugmentPurpose = 0x6175676D656E74;  // "augment"

// How one sample is moved: mirrored first, then shifted down and right.
struct Move {
  bool flip = false;
  std::int64_t down = 0;
  std::int64_t right = 0;
};

Move draw_move(const api::AugmentConfig& augment, std::uint64_t key, std::int64_t sample) {
  Random random(key, static_cast<std::uint64_t>(sample));
  Move move;
  move.flip = augment.flip && (random.bits32() & 1) != 0;
  if (augment.shift > 0) {
    const auto choices = static_cast<std::uint64_t>(2 * augment.shift + 1);
    move.down = static_cast<std::int64_t>(random.below(choices)) - augment.shift;
    move.right = static_cast<std::int64_t>(random.below(choices)) - augment.shift;
  }
  return move;
}

template <class T>
void write_moved(const std::uint8_t* from, const kernels::ImageShape& shape, const Move& move,
                 const std::array<T, 256>& table, T* to) {
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const std::int64_t row = y - move.down;
      std::int64_t column = x - move.right;
      const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
      if (move.flip) column = shape.width - 1 - column;
      const std::uint8_t* pixel = from + (row * shape.width + column) * shape.channels;
      for (std::int64_t c = 0; c < shape.channels; ++c) *to++ = table[inside ? pixel[c] : 0];
    }
  }
}

}  // namespace

api::NormalizeConfig measure_pixels(const ImageSet& images, const Indices& samples) {
  // Counting the 256 values first keeps the sums exact, so they do not depend on the order. Four
  // counts of each, because neighbouring pixels are often equal and would wait for each other.
  std::array<std::array<std::int64_t, 256>, 4> counts{};
  const std::int64_t size = images.shape().size();
  for (const std::int64_t sample : samples) {
    const std::uint8_t* pixels = images.image(sample);
    for (std::int64_t i = 0; i < size; ++i) ++counts[static_cast<std::size_t>(i & 3)][pixels[i]];
  }
  std::int64_t sum = 0;
  std::int64_t squares = 0;
  for (std::int64_t value = 0; value < 256; ++value) {
    const auto at = static_cast<std::size_t>(value);
    const std::int64_t count = counts[0][at] + counts[1][at] + counts[2][at] + counts[3][at];
    sum += count * value;
    squares += count * value * value;
  }
  const double total = static_cast<double>(size) * static_cast<double>(samples.size());
  const double mean = static_cast<double>(sum) / total;
  const double variance = static_cast<double>(squares) / total - mean * mean;
  const double deviation = std::sqrt(std::max(0.0, variance)) / 255;
  // Images of one colour have nothing to scale.
  return {mean / 255, deviation > 0 ? deviation : 1};
}

BatchWriter::BatchWriter(const api::NormalizeConfig& normalize, const api::AugmentConfig& augment,
                         kernels::DataType type, std::uint64_t seed)
    : augment_(augment), type_(type), seed_(mix_keys(seed, kAugmentPurpose)) {
  for (std::size_t value = 0; value < 256; ++value) {
    const double scaled = static_cast<double>(value) / 255;
    floats_[value] = static_cast<float>((scaled - normalize.mean) / normalize.std);
  }
  if (type != kernels::DataType::kFloat32) {
    kernels::round_all(type, 256, floats_.data(), rounded_.data());
  }
}

Batch BatchWriter::make_batch(const kernels::ImageShape& shape, std::int64_t max_samples) const {
  Batch batch;
  batch.indices.reserve(static_cast<std::size_t>(max_samples));
  batch.labels.reserve(static_cast<std::size_t>(max_samples));
  batch.pixels =
      kernels::AlignedArray<std::uint8_t>(max_samples * shape.size() * kernels::size_of(type_));
  return batch;
}

void BatchWriter::write(const ImageSet& images, std::span<const std::int64_t> samples,
                        std::int64_t epoch, Batch& batch) const {
  batch.indices.assign(samples.begin(), samples.end());
  batch.labels.clear();
  for (const std::int64_t sample : samples) batch.labels.push_back(images.label(sample));
  if (type_ == kernels::DataType::kFloat32) {
    write_as(images, floats_, epoch, batch);
  } else {
    write_as(images, rounded_, epoch, batch);
  }
}

template <class T>
void BatchWriter::write_as(const ImageSet& images, const std::array<T, 256>& table,
                           std::int64_t epoch, Batch& batch) const {
  const std::int64_t size = images.shape().size();
  const bool moves = augment_.flip || augment_.shift > 0;
  const std::uint64_t key = mix_keys(seed_, static_cast<std::uint64_t>(epoch));
  T* to = reinterpret_cast<T*>(batch.pixels.data());
  for (const std::int64_t sample : batch.indices) {
    const std::uint8_t* from = images.image(sample);
    if (moves) {
      write_moved(from, images.shape(), draw_move(augment_, key, sample), table, to);
    } else {
      std::transform(from, from + size, to, [&table](std::uint8_t byte) { return table[byte]; });
    }
    to += size;
  }
}

}  // namespace fettle::trainer
