// GELU in its tanh form for the fast backend; formulas as reference.cpp, with
// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), eight numbers at a time in fp32.
#include <algorithm>
#include <numbers>

#include "kernels/exponential.h"
#include "kernels/fast_operations.h"
#include "kernels/lanes.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

constexpr float kCubic = 0.044715F;
constexpr float kFactor = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
// From here on the share is 0 or 1 to the last bit; the cube of a larger number might overflow.
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
FETTLE_FOR_EACH_PROCESSOR void forward_all(std::int64_t count, const Element* x, Element* y) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t part = std::min(kLanes, count - i);
    const Lanes input = load_lanes(x + i, part);
    store_lanes(input * point_at(input).share, y + i, part);
  }
}

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void backward_all(std::int64_t count, const Element* x, const Element* dy,
                                            Element* dx) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t part = std::min(kLanes, count - i);
    store_lanes(load_lanes(dy + i, part) * point_at(load_lanes(x + i, part)).slope, dx + i, part);
  }
}

template <class Element>
class FastTanhGelu : public GeluOp {
 public:
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    forward_all(count, static_cast<const Element*>(x), static_cast<Element*>(y));
  }

  void backward(std::int64_t count, ConstBuffer x, ConstBuffer dy, Buffer dx) override {
    backward_all(count, static_cast<const Element*>(x), static_cast<const Element*>(dy),
                 static_cast<Element*>(dx));
  }
};

}  // namespace

std::unique_ptr<GeluOp> fast_tanh_gelu(DataType type) {
  if (type == DataType::kFloat32) return std::make_unique<FastTanhGelu<float>>();
  return std::make_unique<FastTanhGelu<std::uint16_t>>();
}

}  // namespace fettle::kernels
