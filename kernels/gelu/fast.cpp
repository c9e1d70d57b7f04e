#include "kernels/gelu/fast.h"

#include <algorithm>
#include <numbers>

#include "kernels/exponential.h"
#include "kernels/lanes.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

constexpr float kCubic = 0.044715F;
constexpr float kFactor = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
// From here on the share is 0 or 1 to the last bit; the cube of what is larger might overflow.
constexpr float kFlatFrom = 16;

struct Point {
  Lanes share;
  Lanes slope;
};

[[gnu::always_inline]] inline Point point_at(Lanes x) {
  x = clamp_lanes(x, -kFlatFrom, kFlatFrom);
  const Lanes inner = kFactor * (x + kCubic * x * x * x);
  const Lanes inner_slope = kFactor * (1 + 3 * kCubic * x * x);
  const Lanes share = 1 / (1 + exp_lanes(-2 * inner));
  return {share, share + 2 * x * share * (1 - share) * inner_slope};
}

template <class Element>
[[gnu::always_inline]] inline void forward_all(std::int64_t count, const Element* x, Element* y) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t part = std::min(kLanes, count - i);
    const Lanes input = load_lanes(x + i, part);
    store_lanes(input * point_at(input).share, y + i, part);
  }
}

template <class Element>
[[gnu::always_inline]] inline void backward_all(std::int64_t count, const Element* x,
                                                const Element* dy, Element* dx) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t part = std::min(kLanes, count - i);
    store_lanes(load_lanes(dy + i, part) * point_at(load_lanes(x + i, part)).slope, dx + i, part);
  }
}

FETTLE_FOR_EACH_PROCESSOR void forward_floats(std::int64_t count, const float* x, float* y) {
  forward_all(count, x, y);
}
FETTLE_FOR_EACH_PROCESSOR void forward_bfloats(std::int64_t count, const std::uint16_t* x,
                                               std::uint16_t* y) {
  forward_all(count, x, y);
}
FETTLE_FOR_EACH_PROCESSOR void backward_floats(std::int64_t count, const float* x, const float* dy,
                                               float* dx) {
  backward_all(count, x, dy, dx);
}
FETTLE_FOR_EACH_PROCESSOR void backward_bfloats(std::int64_t count, const std::uint16_t* x,
                                                const std::uint16_t* dy, std::uint16_t* dx) {
  backward_all(count, x, dy, dx);
}

class FastTanhGelu : public GeluOp {
 public:
  explicit FastTanhGelu(DataType type) : type_(type) {}

  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    if (type_ == DataType::kFloat32) {
      forward_floats(count, static_cast<const float*>(x), static_cast<float*>(y));
    } else {
      forward_bfloats(count, static_cast<const std::uint16_t*>(x), static_cast<std::uint16_t*>(y));
    }
  }

  void backward(std::int64_t count, ConstBuffer x, ConstBuffer dy, Buffer dx) override {
    if (type_ == DataType::kFloat32) {
      backward_floats(count, static_cast<const float*>(x), static_cast<const float*>(dy),
                      static_cast<float*>(dx));
    } else {
      backward_bfloats(count, static_cast<const std::uint16_t*>(x),
                       static_cast<const std::uint16_t*>(dy), static_cast<std::uint16_t*>(dx));
    }
  }

 private:
  const DataType type_;
};

}  // namespace

std::unique_ptr<GeluOp> fast_tanh_gelu(DataType type) {
  return std::make_unique<FastTanhGelu>(type);
}

}  // namespace fettle::kernels
