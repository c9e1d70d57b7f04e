// Inverted dropout (Srivastava et al., 2014), CPU reference.
//
//   forward    y = x / (1 - rate) where kept, 0 where dropped      backward   dx likewise from dy
//
// mask.h draws the kept elements; backward draws them again instead of storing them.
#include <algorithm>

#include "kernels/bfloat16.h"
#include "kernels/dropout/mask.h"
#include "kernels/float16.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

// Only `load` and `store` know the type.
template <class Element, float (*load)(Element), Element (*store)(float)>
class ReferenceDropout : public DropoutOp {
 public:
  ReferenceDropout(float rate, std::int64_t elements_per_sample)
      : threshold_(dropout_threshold(rate)),
        scale_(1 / (1 - rate)),
        elements_(elements_per_sample) {}

  void forward(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key,
               ConstBuffer x, Buffer y) override {
    const auto* from = static_cast<const Element*>(x);
    auto* to = static_cast<Element*>(y);
    for (std::int64_t s = 0; s < samples; ++s) {
      mask_sample(indices[s], key, from, to);
      from += elements_;
      to += elements_;
    }
  }

  void backward(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key,
                ConstBuffer dy, Buffer dx) override {
    forward(samples, indices, key, dy, dx);
  }

 private:
  void mask_sample(std::int64_t index, const DropoutKey& key, const Element* from, Element* to) {
    for (std::int64_t first = 0; first < elements_; first += 4) {
      const auto block = static_cast<std::uint32_t>(first / 4);
      const PhiloxCounter words =
          philox(dropout_counter(key, index, block), dropout_philox_key(key));
      const std::int64_t count = std::min<std::int64_t>(4, elements_ - first);
      for (std::int64_t i = 0; i < count; ++i) {
        const bool kept = words[static_cast<std::size_t>(i)] >= threshold_;
        to[first + i] = kept ? store(load(from[first + i]) * scale_) : Element{};
      }
    }
  }

  const std::uint32_t threshold_;
  const float scale_;
  const std::int64_t elements_;
};

float same(float value) { return value; }

}  // namespace

std::unique_ptr<DropoutOp> reference_dropout(float rate, std::int64_t elements_per_sample,
                                             DataType type) {
  if (type == DataType::kFloat32) {
    return std::make_unique<ReferenceDropout<float, same, same>>(rate, elements_per_sample);
  }
  if (type == DataType::kFloat16) {
    return std::make_unique<ReferenceDropout<std::uint16_t, from_float16, to_float16>>(
        rate, elements_per_sample);
  }
  return std::make_unique<ReferenceDropout<std::uint16_t, from_bfloat16, to_bfloat16>>(
      rate, elements_per_sample);
}

}  // namespace fettle::kernels
