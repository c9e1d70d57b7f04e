#include "kernels/gather/reference.h"

#include <algorithm>

#include "kernels/cast/loops.h"
#include "kernels/gather/move.h"

namespace fettle::kernels {
namespace {

template <class Pixel, class Value, class Convert>
void write_moved(const Pixel* from, const ImageShape& shape, const Move& move, Convert convert,
                 Value* to) {
  const auto height = static_cast<std::int32_t>(shape.height);
  const auto width = static_cast<std::int32_t>(shape.width);
  for (std::int32_t row = 0; row < height; ++row) {
    for (std::int32_t column = 0; column < width; ++column) {
      const Place place = place_before(move, height, width, row, column);
      const std::int64_t first = (std::int64_t{place.row} * width + place.column) * shape.channels;
      for (std::int64_t c = 0; c < shape.channels; ++c)
        *to++ = convert(place.inside ? from[first + c] : Pixel{});
    }
  }
}

void write_tokens(const Samples& text, std::span<const std::int64_t> indices, std::int32_t* x,
                  std::int32_t* labels) {
  const std::int64_t length = text.shape.size();
  for (const std::int64_t index : indices) {
    const auto* from = static_cast<const std::uint16_t*>(text.pixels) + index * length;
    x = std::copy_n(from, length, x);
    labels = std::copy_n(from + 1, length, labels);  // the last: the token after the sample
  }
}

class ReferenceGather final : public GatherOp {
 public:
  ReferenceGather(const Samples& samples, const ImageLook& look, DataType type)
      : samples_(samples), writer_(look, type) {}

  void run(std::int64_t samples, const std::int64_t* indices, const std::uint32_t* epoch, Buffer x,
           std::int32_t* labels) override {
    writer_.write(samples_, {indices, static_cast<std::size_t>(samples)}, *epoch, x, labels);
  }

 private:
  const Samples samples_;
  const SampleWriter writer_;
};

}  // namespace

SampleWriter::SampleWriter(const ImageLook& look, DataType type)
    : look_(look), type_(type), floats_(values_of_bytes(look)) {
  if (type != DataType::kFloat32) rounded_ = round_values(floats_, type);
}

void SampleWriter::write(const Samples& samples, std::span<const std::int64_t> indices,
                         std::uint32_t epoch, Buffer x, std::int32_t* labels) const {
  if (samples.type == PixelType::kToken) {
    return write_tokens(samples, indices, static_cast<std::int32_t*>(x), labels);
  }
  for (const std::int64_t index : indices) *labels++ = samples.labels[index];
  if (samples.type == PixelType::kByte) {
    write_bytes(samples, indices, epoch, x);
  } else {
    write_floats(samples, indices, epoch, x);
  }
}

void SampleWriter::write_bytes(const Samples& samples, std::span<const std::int64_t> indices,
                               std::uint32_t epoch, Buffer x) const {
  if (type_ == DataType::kFloat32) {
    write_as<std::uint8_t, float>(
        samples, indices, epoch, [this](std::uint8_t byte) { return floats_[byte]; }, x);
  } else {
    write_as<std::uint8_t, std::uint16_t>(
        samples, indices, epoch, [this](std::uint8_t byte) { return rounded_[byte]; }, x);
  }
}

void SampleWriter::write_floats(const Samples& samples, std::span<const std::int64_t> indices,
                                std::uint32_t epoch, Buffer x) const {
  const auto value_of = [this](float pixel) {
    return normalized(pixel, look_.mean, look_.deviation);
  };
  if (type_ == DataType::kFloat32) {
    write_as<float, float>(samples, indices, epoch, value_of, x);
    return;
  }
  const auto rounded_value_of = [this, value_of](float pixel) {
    const float wide = value_of(pixel);
    std::uint16_t rounded = 0;
    round_all(type_, 1, &wide, &rounded);
    return rounded;
  };
  write_as<float, std::uint16_t>(samples, indices, epoch, rounded_value_of, x);
}

template <class Pixel, class Value, class Convert>
void SampleWriter::write_as(const Samples& samples, std::span<const std::int64_t> indices,
                            std::uint32_t epoch, Convert convert, Buffer x) const {
  const std::int64_t size = samples.shape.size();
  auto* to = static_cast<Value*>(x);
  for (const std::int64_t index : indices) {
    const Pixel* from = static_cast<const Pixel*>(samples.pixels) + index * size;
    if (moves(look_)) {
      write_moved(from, samples.shape, draw_move(look_, epoch, index), convert, to);
    } else {
      std::transform(from, from + size, to, convert);
    }
    to += size;
  }
}

std::unique_ptr<GatherOp> reference_gather(const Samples& samples, const ImageLook& look,
                                           const PlanOptions& plan) {
  return std::make_unique<ReferenceGather>(samples, look, plan.type);
}

}  // namespace fettle::kernels
