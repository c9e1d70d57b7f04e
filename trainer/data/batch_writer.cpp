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

template <class Pixel, class Value, class Convert>
void write_moved(const Pixel* from, const kernels::ImageShape& shape, const Move& move,
                 Convert convert, Value* to) {
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const std::int64_t row = y - move.down;
      std::int64_t column = x - move.right;
      const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
      if (move.flip) column = shape.width - 1 - column;
      const std::int64_t first = (row * shape.width + column) * shape.channels;
      for (std::int64_t c = 0; c < shape.channels; ++c)
        *to++ = convert(inside ? from[first + c] : Pixel{});
    }
  }
}

}  // namespace

namespace {

// Images of one colour have nothing to scale.
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
  const double mean = sum_of([](double x) { return x; }) / total;
  const double squares = sum_of([mean](double x) { return (x - mean) * (x - mean); });
  return normalize_by(mean, std::sqrt(squares / total));
}

}  // namespace

api::NormalizeConfig measure_pixels(const ImageSet& images, const Indices& samples) {
  if (images.pixel_type() == PixelType::kFloat) return measure_floats(images, samples);
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
  return normalize_by(mean / 255, deviation);
}

BatchWriter::BatchWriter(const api::NormalizeConfig& normalize, const api::AugmentConfig& augment,
                         kernels::DataType type, std::uint64_t seed)
    : normalize_(normalize),
      augment_(augment),
      type_(type),
      seed_(mix_keys(seed, kAugmentPurpose)) {
  for (std::size_t value = 0; value < 256; ++value) {
    const double scaled = static_cast<double>(value) / 255;
    floats_[value] = static_cast<float>((scaled - normalize.mean) / normalize.std);
  }
  if (type != kernels::DataType::kFloat32) {
    kernels::round_all(type, 256, floats_.data(), rounded_.data());
  }
}

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
  batch.indices.assign(samples.begin(), samples.end());
  batch.labels.clear();
  if (images.pixel_type() == PixelType::kToken) {
    write_tokens(images, batch);
    return;
  }
  for (const std::int64_t sample : samples) batch.labels.push_back(images.label(sample));
  if (images.pixel_type() == PixelType::kByte) {
    write_bytes(images, epoch, batch);
  } else {
    write_floats(images, epoch, batch);
  }
}

void BatchWriter::write_tokens(const ImageSet& text, Batch& batch) {
  const std::int64_t length = text.shape().size();
  auto* to = reinterpret_cast<std::int32_t*>(batch.pixels.data());
  for (const std::int64_t sample : batch.indices) {
    const auto* from = text.pixels<std::uint16_t>(sample);
    to = std::copy_n(from, length, to);
    batch.labels.insert(batch.labels.end(), from + 1, from + 1 + length);
  }
}

void BatchWriter::write_bytes(const ImageSet& images, std::int64_t epoch, Batch& batch) const {
  if (type_ == kernels::DataType::kFloat32) {
    write_as<std::uint8_t, float>(images, epoch, batch,
                                  [this](std::uint8_t byte) { return floats_[byte]; });
  } else {
    write_as<std::uint8_t, std::uint16_t>(images, epoch, batch,
                                          [this](std::uint8_t byte) { return rounded_[byte]; });
  }
}

void BatchWriter::write_floats(const ImageSet& images, std::int64_t epoch, Batch& batch) const {
  const auto normalized = [this](float value) {
    return static_cast<float>((static_cast<double>(value) - normalize_.mean) / normalize_.std);
  };
  if (type_ == kernels::DataType::kFloat32) {
    write_as<float, float>(images, epoch, batch, normalized);
    return;
  }
  write_as<float, std::uint16_t>(images, epoch, batch, [&](float value) {
    const float wide = normalized(value);
    std::uint16_t rounded = 0;
    kernels::round_all(type_, 1, &wide, &rounded);
    return rounded;
  });
}

template <class Pixel, class Value, class Convert>
void BatchWriter::write_as(const ImageSet& images, std::int64_t epoch, Batch& batch,
                           Convert convert) const {
  const std::int64_t size = images.shape().size();
  const bool moves = augment_.flip || augment_.shift > 0;
  const std::uint64_t key = mix_keys(seed_, static_cast<std::uint64_t>(epoch));
  auto* to = reinterpret_cast<Value*>(batch.pixels.data());
  for (const std::int64_t sample : batch.indices) {
    const Pixel* from = images.pixels<Pixel>(sample);
    if (moves) {
      write_moved(from, images.shape(), draw_move(augment_, key, sample), convert, to);
    } else {
      std::transform(from, from + size, to, convert);
    }
    to += size;
  }
}

}  // namespace fettle::trainer
