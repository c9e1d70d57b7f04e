// Max and average pooling, eight channels at a time (lanes.h). Results as reference.cpp; averages
// up to rounding.
//
// The place of each maximum is kept in 16 bits. If windows do not overlap, backward writes every
// gradient once; otherwise it sums one image in fp32.
#include <algorithm>

#include "kernels/aligned.h"
#include "kernels/fast_operations.h"
#include "kernels/lanes.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

// One image's shape as needed by functions compiled for each processor.
struct Geometry {
  explicit Geometry(const PoolShape& shape)
      : kernel_height(shape.kernel_height),
        kernel_width(shape.kernel_width),
        out_height(shape.output().height),
        out_width(shape.output().width),
        channels(shape.input.channels),
        row(shape.input.width * shape.input.channels),
        window_step(shape.stride * shape.input.channels),
        window_row_step(shape.stride * row),
        share(1.0F / static_cast<float>(shape.kernel_height * shape.kernel_width)) {}

  std::int64_t kernel_height, kernel_width, out_height, out_width, channels;
  std::int64_t row;              // elements in a row of the input
  std::int64_t window_step;      // from one window to the next along a row, in elements
  std::int64_t window_row_step;  // from one row of windows to the next
  float share;                   // 1 / elements in a window
};

// Calls visit(offset of the window in the input, offset in the output, lanes in use) for each
// window and kLanes of its channels. A full set of lanes has a type (AllLanes), which makes loads
// branch-free.
template <class Visit>
[[gnu::always_inline]] inline void for_each_window(const Geometry& g, Visit visit) {
  std::int64_t result = 0;
  for (std::int64_t p = 0; p < g.out_height; ++p) {
    for (std::int64_t q = 0; q < g.out_width; ++q, result += g.channels) {
      const std::int64_t window = p * g.window_row_step + q * g.window_step;
      std::int64_t c = 0;
      for (; c + kLanes <= g.channels; c += kLanes) visit(window + c, result + c, AllLanes{});
      if (c < g.channels) visit(window + c, result + c, g.channels - c);
    }
  }
}

// Calls visit(offset in the window, its number k) for each element of a window.
template <class Visit>
[[gnu::always_inline]] inline void for_each_element(const Geometry& g, Visit visit) {
  std::int32_t k = 0;
  for (std::int64_t u = 0; u < g.kernel_height; ++u) {
    for (std::int64_t v = 0; v < g.kernel_width; ++v, ++k) visit(u * g.row + v * g.channels, k);
  }
}

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void take_max(const Geometry& g, const Element* x, Element* y,
                                        std::uint16_t* largest) {
  for_each_window(
      g, [&](std::int64_t window, std::int64_t result, auto lanes) [[gnu::always_inline]] {
        Lanes best = load_lanes(x + window, lanes);  // place 0
        LanesOfIntegers place{};
        for_each_element(g, [&](std::int64_t offset, std::int32_t k) [[gnu::always_inline]] {
          const Lanes candidate = load_lanes(x + window + offset, lanes);
          const LanesOfIntegers better = (candidate > best) | (candidate != candidate);  // or NaN
          best = better ? candidate : best;
          place = better ? LanesOfIntegers{} + k : place;
        });
        store_lanes(best, y + result, lanes);
        store_part(__builtin_convertvector(place, LanesOfHalves), largest + result, lanes);
      });
}

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void take_average(const Geometry& g, const Element* x, Element* y) {
  for_each_window(g,
                  [&](std::int64_t window, std::int64_t result, auto lanes) [[gnu::always_inline]] {
                    Lanes sum{};
                    for_each_element(g, [&](std::int64_t offset, std::int32_t) {
                      sum += load_lanes(x + window + offset, lanes);
                    });
                    store_lanes(sum * g.share, y + result, lanes);
                  });
}

// The gradient of element k of a window.
template <class Element>
[[gnu::always_inline]] inline Lanes gradient_at(const Geometry& g, const Lanes& dy,
                                                const LanesOfIntegers& place, std::int32_t k,
                                                const Element* largest) {
  return largest == nullptr ? dy * g.share : (place == k ? dy : Lanes{});
}

// `largest` is nullptr for the average. Adds if `overlapping`, otherwise writes.
template <bool overlapping, class Element, class Target>
FETTLE_FOR_EACH_PROCESSOR void scatter(const Geometry& g, const Element* dy,
                                       const std::uint16_t* largest, Target* dx) {
  for_each_window(
      g, [&](std::int64_t window, std::int64_t result, auto lanes) [[gnu::always_inline]] {
        const Lanes gradient = load_lanes(dy + result, lanes);
        LanesOfIntegers place{};
        if (largest != nullptr) {
          place = __builtin_convertvector(load_part<LanesOfHalves>(largest + result, lanes),
                                          LanesOfIntegers);
        }
        for_each_element(g, [&](std::int64_t offset, std::int32_t k) [[gnu::always_inline]] {
          Lanes value = gradient_at(g, gradient, place, k, largest);
          Target* to = dx + window + offset;
          if (overlapping) value += load_lanes(to, lanes);
          store_lanes(value, to, lanes);
        });
      });
}

template <class Element>
class FastPool : public PoolOp {
 public:
  FastPool(const PoolShape& shape, const PlanOptions& plan)
      : shape_(shape),
        geometry_(shape),
        in_(shape.input.size()),
        out_(shape.output().size()),
        largest_(shape.kind == PoolKind::kMax ? plan.max_samples * out_ : 0),
        sums_(overlapping() ? in_ : 0) {}

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    const auto* input = static_cast<const Element*>(x);
    auto* output = static_cast<Element*>(y);
    for (std::int64_t s = 0; s < samples; ++s, input += in_, output += out_) {
      if (shape_.kind == PoolKind::kMax) {
        take_max(geometry_, input, output, largest_.data() + s * out_);
      } else {
        take_average(geometry_, input, output);
      }
    }
  }

  void backward(std::int64_t samples, ConstBuffer, ConstBuffer, ConstBuffer dy,
                Buffer dx) override {
    const auto* gradient = static_cast<const Element*>(dy);
    auto* input_gradient = static_cast<Element*>(dx);
    for (std::int64_t s = 0; s < samples; ++s, gradient += out_, input_gradient += in_) {
      // Empty: average pooling.
      const std::uint16_t* largest = largest_.empty() ? nullptr : largest_.data() + s * out_;
      if (overlapping()) {
        std::fill(sums_.begin(), sums_.end(), 0.0F);
        scatter<true>(geometry_, gradient, largest, sums_.data());
        copy_sums(input_gradient);
      } else {
        if (!covering()) std::fill_n(input_gradient, in_, Element{});  // for inputs in no window
        scatter<false>(geometry_, gradient, largest, input_gradient);
      }
    }
  }

 private:
  bool overlapping() const {
    return shape_.stride < shape_.kernel_height || shape_.stride < shape_.kernel_width;
  }
  // Whether every input lies in a window.
  bool covering() const {
    const ImageShape out = shape_.output();
    return shape_.stride == shape_.kernel_height && shape_.stride == shape_.kernel_width &&
           out.height * shape_.stride == shape_.input.height &&
           out.width * shape_.stride == shape_.input.width;
  }

  void copy_sums(Element* to) const {
    for (std::int64_t i = 0; i < in_; i += kLanes) {
      const std::int64_t lanes = std::min(kLanes, in_ - i);
      store_lanes(load_lanes(sums_.data() + i, lanes), to + i, lanes);
    }
  }

  const PoolShape shape_;
  const Geometry geometry_;
  const std::int64_t in_, out_;          // elements of an image
  AlignedArray<std::uint16_t> largest_;  // place in the window for each output of the last forward
  AlignedArray<float> sums_;             // of one image
};

}  // namespace

std::unique_ptr<PoolOp> fast_pool(const PoolShape& shape, const PlanOptions& plan) {
  if (plan.type == DataType::kFloat32) return std::make_unique<FastPool<float>>(shape, plan);
  return std::make_unique<FastPool<std::uint16_t>>(shape, plan);
}

}  // namespace fettle::kernels
