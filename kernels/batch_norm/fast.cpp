// Batch normalisation, eight channels at a time (lanes.h): formulas as reference.cpp.
//
// Memory is the limit, so each direction reads its inputs as rarely as possible: once for the
// statistics and once to normalise. The statistics of a chunk of rows that fits the first-level
// cache are taken in fp32 about the chunk's own mean, and chunks are merged in double (Chan, Golub,
// LeVeque 1979): one pass over memory, without the cancellation of sums of squares.
#include <algorithm>
#include <cmath>

#include "kernels/aligned.h"
#include "kernels/fast_operations.h"
#include "kernels/lanes.h"
#include "kernels/shapes.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

// Rows of [rows, channels], dense.
struct Rows {
  std::int64_t count, channels;
};

// Sums per channel in fp32, which the vector loops read and write.
struct ChannelSums {
  float* first;   // mean, or sum of g
  float* second;  // sum of squared deviations, or sum of g (x - mean)
};

struct ChannelFactors {
  const float *mean, *factor, *offset, *slope;
};

// The end of a block, applied to normalised numbers before they are written. `shortcut` begins
// where x does.
template <class Element>
struct End {
  const Element* shortcut;  // or nullptr
  bool relu;
};

constexpr Lanes kZero{};

// Calls visit(channel, lanes in use) for every eight channels. A full set of lanes has a type
// (AllLanes), which makes loads branch-free.
template <class Visit>
[[gnu::always_inline]] inline void for_each_lanes(std::int64_t channels, Visit visit) {
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) visit(c, AllLanes{});
  if (c < channels) visit(c, channels - c);
}

// Returns the sum over the rows of value(row), in four interleaved sums, so that additions need not
// wait for each other.
template <class Value>
[[gnu::always_inline]] inline Lanes sum_rows(std::int64_t rows, Value value) {
  Lanes a{}, b{}, c{}, d{};
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    a += value(row);
    b += value(row + 1);
    c += value(row + 2);
    d += value(row + 3);
  }
  for (; row < rows; ++row) a += value(row);
  return (a + b) + (c + d);
}

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void measure(const Rows& rows, const Element* x, const ChannelSums& out) {
  for_each_lanes(rows.channels, [&](std::int64_t c, auto lanes) [[gnu::always_inline]] {
    const auto at = [&](std::int64_t row) [[gnu::always_inline]] {
      return load_lanes(x + row * rows.channels + c, lanes);
    };
    const Lanes mean = sum_rows(rows.count, at) / static_cast<float>(rows.count);
    const Lanes squares = sum_rows(rows.count, [&](std::int64_t row) [[gnu::always_inline]] {
      const Lanes deviation = at(row) - mean;
      return deviation * deviation;
    });
    store_lanes(mean, out.first + c, lanes);
    store_lanes(squares, out.second + c, lanes);
  });
}

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void measure_gradient(const Rows& rows, const Element* x,
                                                const Element* g, const float* mean,
                                                const ChannelSums& out) {
  for_each_lanes(rows.channels, [&](std::int64_t c, auto lanes) [[gnu::always_inline]] {
    const Lanes middle = load_lanes(mean + c, lanes);
    const auto gradient = [&](std::int64_t row) [[gnu::always_inline]] {
      return load_lanes(g + row * rows.channels + c, lanes);
    };
    const auto product = [&](std::int64_t row) [[gnu::always_inline]] {
      return gradient(row) * (load_lanes(x + row * rows.channels + c, lanes) - middle);
    };
    store_lanes(sum_rows(rows.count, gradient), out.first + c, lanes);
    store_lanes(sum_rows(rows.count, product), out.second + c, lanes);
  });
}

// y = (x - mean) factor + offset, then plus the shortcut, then ReLU.
template <class Element>
FETTLE_FOR_EACH_PROCESSOR void normalise(const Rows& rows, const Element* x,
                                         const ChannelFactors& f, const End<Element>& end,
                                         Element* y) {
  for_each_lanes(rows.channels, [&](std::int64_t c, auto lanes) [[gnu::always_inline]] {
    const Lanes mean = load_lanes(f.mean + c, lanes);
    const Lanes factor = load_lanes(f.factor + c, lanes);
    const Lanes offset = load_lanes(f.offset + c, lanes);
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const std::int64_t i = row * rows.channels + c;
      Lanes value = (load_lanes(x + i, lanes) - mean) * factor + offset;
      if (end.shortcut != nullptr) value += load_lanes(end.shortcut + i, lanes);
      if (end.relu) value = value < kZero ? kZero : value;  // NaN passes
      store_lanes(value, y + i, lanes);
    }
  });
}

// dx = factor g - offset - (x - mean) slope.
template <class Element>
FETTLE_FOR_EACH_PROCESSOR void input_gradient(const Rows& rows, const Element* x, const Element* g,
                                              const ChannelFactors& f, Element* dx) {
  for_each_lanes(rows.channels, [&](std::int64_t c, auto lanes) [[gnu::always_inline]] {
    const Lanes mean = load_lanes(f.mean + c, lanes);
    const Lanes factor = load_lanes(f.factor + c, lanes);
    const Lanes offset = load_lanes(f.offset + c, lanes);
    const Lanes slope = load_lanes(f.slope + c, lanes);
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const std::int64_t i = row * rows.channels + c;
      const Lanes deviation = load_lanes(x + i, lanes) - mean;
      store_lanes(factor * load_lanes(g + i, lanes) - offset - deviation * slope, dx + i, lanes);
    }
  });
}

template <class Element>
class FastBatchNorm : public BatchNormOp {
 public:
  FastBatchNorm(const BatchNormShape& shape, const PlanOptions& plan)
      : shape_(shape),
        type_(plan.type),
        channels_(shape.input.channels),
        mean_(channels_),
        inverse_deviation_(channels_),
        factor_(channels_),
        offset_(channels_),
        slope_(channels_),
        chunk_first_(channels_),
        chunk_second_(channels_),
        first_(channels_),
        second_(channels_) {}

  void forward_training(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
                        float* running_mean, float* running_variance, Buffer y,
                        const BlockEnd& end) override {
    check_end(shape_, end);
    const std::int64_t rows = rows_of(samples);
    // first_: the mean of a channel; second_: the sum of squared deviations from it.
    take_statistics(rows, static_cast<const Element*>(x));
    const double n = static_cast<double>(rows);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double variance = second_[c] / n;
      mean_[c] = static_cast<float>(first_[c]);
      inverse_deviation_[c] = inverse_deviation_of(variance);
      factor_[c] = inverse_deviation_[c] * scale[c];
      move_towards(first_[c], running_mean[c]);
      move_towards(rows > 1 ? variance * n / (n - 1) : variance, running_variance[c]);
    }
    write_normalised(rows, x, mean_.data(), shift, end, y);
  }

  void forward_inference(std::int64_t samples, ConstBuffer x, const float* scale,
                         const float* shift, const float* running_mean,
                         const float* running_variance, Buffer y, const BlockEnd& end) override {
    check_end(shape_, end);
    for (std::int64_t c = 0; c < channels_; ++c) {
      factor_[c] = inverse_deviation_of(running_variance[c]) * scale[c];
    }
    write_normalised(rows_of(samples), x, running_mean, shift, end, y);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, const float* scale,
                Buffer dx, float* scale_gradient, float* shift_gradient) override {
    const std::int64_t rows = rows_of(samples);
    if (shape_.relu) fast_relu_backward(type_, rows * channels_, y, dy, dy);
    const auto* input = static_cast<const Element*>(x);
    const auto* gradient = static_cast<const Element*>(dy);
    take_gradient_sums(rows, input, gradient);
    const double n = static_cast<double>(rows);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double inverse = inverse_deviation_[c];
      scale_gradient[c] += static_cast<float>(second_[c] * inverse);
      shift_gradient[c] += static_cast<float>(first_[c]);
      factor_[c] = static_cast<float>(scale[c] * inverse);
      offset_[c] = static_cast<float>(scale[c] * inverse * first_[c] / n);
      // second_ has the factor x - mean, and so does the slope's multiplicand: each lacks an
      // `inverse` of the h in dx (reference.cpp).
      slope_[c] = static_cast<float>(scale[c] * inverse * inverse * inverse * second_[c] / n);
    }
    if (dx == nullptr) return;  // dx is not wanted
    const ChannelFactors factors{mean_.data(), factor_.data(), offset_.data(), slope_.data()};
    for_each_chunk(rows, [&](std::int64_t row, std::int64_t count) {
      const std::int64_t first = row * channels_;
      input_gradient({count, channels_}, input + first, gradient + first, factors,
                     static_cast<Element*>(dx) + first);
    });
  }

  void backward_end(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                    ConstBuffer other, const float* scale, Buffer dx, float* scale_gradient,
                    float* shift_gradient) override {
    check_end(shape_, {.relu = true});
    const std::int64_t count = rows_of(samples) * channels_;
    if (other != nullptr) fast_add(type_, count, dy, other, dy, /*relu=*/false);
    if (y != nullptr) fast_relu_backward(type_, count, y, dy, dy);
    // Without a fused ReLU (check_end) it reads no y.
    backward(samples, x, nullptr, dy, scale, dx, scale_gradient, shift_gradient);
  }

 private:
  // Elements of a chunk that stay in the first-level cache together with their gradients.
  static constexpr std::int64_t kChunkElements = 2048;

  std::int64_t rows_of(std::int64_t samples) const {
    return samples * shape_.input.height * shape_.input.width;
  }
  float inverse_deviation_of(double variance) const {
    return static_cast<float>(1 / std::sqrt(variance + shape_.epsilon));
  }
  void move_towards(double statistic, float& running) const {
    running = static_cast<float>((1 - shape_.momentum) * static_cast<double>(running) +
                                 shape_.momentum * statistic);
  }

  // Calls visit(first row, rows) for every chunk.
  template <class Visit>
  void for_each_chunk(std::int64_t rows, Visit visit) {
    const std::int64_t length = std::max<std::int64_t>(16, kChunkElements / channels_);
    for (std::int64_t row = 0; row < rows; row += length) visit(row, std::min(length, rows - row));
  }

  // Sets first_ to the mean, second_ to the sum of squared deviations from it.
  void take_statistics(std::int64_t rows, const Element* x) {
    std::fill(first_.begin(), first_.end(), 0.0);
    std::fill(second_.begin(), second_.end(), 0.0);
    for_each_chunk(rows, [&](std::int64_t row, std::int64_t count) {
      measure({count, channels_}, x + row * channels_, {chunk_first_.data(), chunk_second_.data()});
      const double before = static_cast<double>(row);
      const double added = static_cast<double>(count);
      for (std::int64_t c = 0; c < channels_; ++c) {
        const double difference = chunk_first_[c] - first_[c];
        first_[c] += difference * added / (before + added);
        second_[c] +=
            chunk_second_[c] + difference * difference * before * added / (before + added);
      }
    });
  }

  // Sets first_ to the sum of g, second_ to the sum of g (x - mean).
  void take_gradient_sums(std::int64_t rows, const Element* x, const Element* g) {
    std::fill(first_.begin(), first_.end(), 0.0);
    std::fill(second_.begin(), second_.end(), 0.0);
    for_each_chunk(rows, [&](std::int64_t row, std::int64_t count) {
      measure_gradient({count, channels_}, x + row * channels_, g + row * channels_, mean_.data(),
                       {chunk_first_.data(), chunk_second_.data()});
      for (std::int64_t c = 0; c < channels_; ++c) {
        first_[c] += chunk_first_[c];
        second_[c] += chunk_second_[c];
      }
    });
  }

  // Normalises x about `mean`, times factor_.
  void write_normalised(std::int64_t rows, ConstBuffer x, const float* mean, const float* shift,
                        const BlockEnd& end, Buffer y) {
    const ChannelFactors factors{mean, factor_.data(), /*offset=*/shift, /*slope=*/nullptr};
    for_each_chunk(rows, [&](std::int64_t row, std::int64_t count) {
      const std::int64_t first = row * channels_;
      const auto* shortcut = static_cast<const Element*>(end.shortcut);
      if (shortcut != nullptr) shortcut += first;
      normalise({count, channels_}, static_cast<const Element*>(x) + first, factors,
                {shortcut, shape_.relu || end.relu}, static_cast<Element*>(y) + first);
    });
  }

  const BatchNormShape shape_;
  const DataType type_;
  const std::int64_t channels_;
  AlignedArray<float> mean_, inverse_deviation_;  // of the last forward_training
  AlignedArray<float> factor_, offset_, slope_;   // of the call under way
  AlignedArray<float> chunk_first_, chunk_second_;
  AlignedArray<double> first_, second_;
};

}  // namespace

std::unique_ptr<BatchNormOp> fast_batch_norm(const BatchNormShape& shape, const PlanOptions& plan) {
  if (plan.type == DataType::kFloat32) return std::make_unique<FastBatchNorm<float>>(shape, plan);
  return std::make_unique<FastBatchNorm<std::uint16_t>>(shape, plan);
}

}  // namespace fettle::kernels
