#include "trainer/data/batch_writer.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fettle::trainer {

namespace {

// Images of a single colour have no deviation to divide by.
api::NormalizeConfig normalize_by(double mean, double deviation) {
  return {mean, deviation > 0 ? deviation : 1};
}

api::NormalizeConfig measure_floats(const ImageSet& images, const Indices& samples) {
  const std::int64_t size = images.shape().size();
  const double total = static_cast<double>(size) * static_cast<double>(samples.size());
  const auto sum_of = [&](auto term) {
    double sum = 0;
    for (const std::int64_t sample : samples) {
      const float* pixels = images.pixels<float>(sample);
      for (std::int64_t i = 0; i < size; ++i) sum += term(static_cast<double>(pixels[i]));
    }
    return sum;
  };
  // Two passes over the samples: squared differences lose no digits to a large mean.
  const double mean = sum_of([](double x) { return x; }) / total;
  const double squares = sum_of([mean](double x) { return (x - mean) * (x - mean); });
  return normalize_by(mean, std::sqrt(squares / total));
}

}  // namespace

api::NormalizeConfig measure_pixels(const ImageSet& images, const Indices& samples) {
  if (images.pixel_type() == PixelType::kFloat) return measure_floats(images, samples);
  // Counting the 256 values first keeps the sums exact, so they do not depend on the order. Each
  // value has four counters, because neighbouring pixels are often equal and would wait for each
  // other.
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
  return normalize_by(mean / 255, deviation);
}

BatchWriter::BatchWriter(const api::NormalizeConfig& normalize, const api::AugmentConfig& augment,
                         kernels::DataType type, std::uint64_t seed)
    : type_(type),
      look_{normalize.mean, normalize.std, augment.flip, augment.shift, seed},
      samples_(look_, type) {}

Batch BatchWriter::make_batch(const ImageSet& images, std::int64_t max_samples) const {
  const bool tokens = images.pixel_type() == PixelType::kToken;
  const std::int64_t numbers = max_samples * images.shape().size();
  Batch batch;
  batch.indices.reserve(static_cast<std::size_t>(max_samples));
  batch.labels.reserve(static_cast<std::size_t>(tokens ? numbers : max_samples));
  batch.pixels = kernels::AlignedArray<std::uint8_t>(
      numbers * (tokens ? std::int64_t{sizeof(std::int32_t)} : kernels::size_of(type_)));
  return batch;
}

void BatchWriter::write(const ImageSet& images, std::span<const std::int64_t> samples,
                        std::int64_t epoch, Batch& batch) const {
  const bool tokens = images.pixel_type() == PixelType::kToken;
  const auto labels = static_cast<std::size_t>(tokens ? images.shape().size() : 1);
  batch.indices.assign(samples.begin(), samples.end());
  batch.labels.resize(samples.size() * labels);
  samples_.write(images.samples(), samples, static_cast<std::uint32_t>(epoch), batch.pixels.data(),
                 batch.labels.data());
}

}  // namespace fettle::trainer
