// Bound by bytes in fp32 (8 an element), by both in 16 bits: ten rounds of Philox are some 70
// instructions for four elements. So a thread draws once for four neighbours, reads and writes
// packs of 16 bytes, and draws again in backward rather than read a mask from memory.
//
// The grid is elements x samples: a pack never holds elements of two samples, whose draws are
// unrelated. If a sample is not a whole number of packs, a thread handles its four elements one by
// one.
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/operations.h"
#include "kernels/dropout/mask.h"

namespace fettle::kernels {
namespace {

constexpr int kElementsOfDraw = 4;

struct Rule {
  DropoutKey key;
  std::uint32_t threshold = 0;  // words below this are dropped
  float scale = 1;
};

template <class T>
__device__ T drop_or_scale(const Rule& rule, std::uint32_t word, T x) {
  return word >= rule.threshold ? cuda::from_float<T>(cuda::to_float(x) * rule.scale) : T(0.0F);
}

__device__ PhiloxCounter draw(const Rule& rule, std::int64_t index, std::int64_t first) {
  const auto block = static_cast<std::uint32_t>(first / kElementsOfDraw);
  return philox(dropout_counter(rule.key, index, block), dropout_philox_key(rule.key));
}

// Drops from `width` elements, starting at the sample's element `first`, on a boundary of packs.
template <int width, class T>
__device__ void drop_pack(const Rule& rule, std::int64_t index, std::int64_t first, const T* x,
                          T* y) {
  const cuda::Pack<T, width> inputs = cuda::load_pack<width>(x);
  cuda::Pack<T, width> outputs;
#pragma unroll
  for (int draws = 0; draws < width; draws += kElementsOfDraw) {
    const PhiloxCounter words = draw(rule, index, first + draws);
#pragma unroll
    for (int i = 0; i < kElementsOfDraw; ++i) {
      outputs.at[draws + i] = drop_or_scale(rule, words[i], inputs.at[draws + i]);
    }
  }
  cuda::store_pack(outputs, y);
}

// Drops from `count` elements, at most four, at any alignment.
template <class T>
__device__ void drop_some(const Rule& rule, std::int64_t index, std::int64_t first,
                          std::int64_t count, const T* x, T* y) {
  const PhiloxCounter words = draw(rule, index, first);
#pragma unroll
  for (int i = 0; i < kElementsOfDraw; ++i) {
    if (i < count) y[i] = drop_or_scale(rule, words[i], x[i]);
  }
}

// `width`: elements of a pack, or 1.
template <int width, class T>
__global__ void drop_kernel(Rule rule, std::int64_t samples, std::int64_t elements,
                            const std::int64_t* indices, const T* x, T* y) {
  constexpr int kOfThread = width == 1 ? kElementsOfDraw : width;
  const std::int64_t columns = (elements + kOfThread - 1) / kOfThread;
  cuda::for_each_cell(samples, columns, [&](std::int64_t sample, std::int64_t column) {
    const std::int64_t first = column * kOfThread;
    const std::int64_t place = sample * elements + first;
    if constexpr (width == 1) {
      drop_some(rule, indices[sample], first, elements - first, x + place, y + place);
    } else {
      drop_pack<width>(rule, indices[sample], first, x + place, y + place);
    }
  });
}

template <class T>
class CudaDropout : public DropoutOp {
 public:
  CudaDropout(cuda::Device& device, float rate, std::int64_t elements_per_sample)
      : device_(device),
        threshold_(dropout_threshold(rate)),
        scale_(1 / (1 - rate)),
        elements_(elements_per_sample) {}

  void forward(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key,
               ConstBuffer x, Buffer y) override {
    run(samples, indices, key, static_cast<const T*>(x), static_cast<T*>(y));
  }

  void backward(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key,
                ConstBuffer dy, Buffer dx) override {
    run(samples, indices, key, static_cast<const T*>(dy), static_cast<T*>(dx));
  }

 private:
  void run(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key, const T* x,
           T* y) {
    constexpr int kWidth = cuda::kPackWidth<T>;
    const bool packs =
        elements_ % kWidth == 0 && cuda::is_aligned<kWidth>(x) && cuda::is_aligned<kWidth>(y);
    const std::int64_t of_thread = packs ? kWidth : kElementsOfDraw;
    const std::int64_t columns = (elements_ + of_thread - 1) / of_thread;
    cuda::launch(device_.stream(), cuda::grid_over(samples, columns),
                 packs ? drop_kernel<kWidth, T> : drop_kernel<1, T>, Rule{key, threshold_, scale_},
                 samples, elements_, indices, x, y);
  }

  cuda::Device& device_;
  const std::uint32_t threshold_;
  const float scale_;
  const std::int64_t elements_;
};

}  // namespace

std::unique_ptr<DropoutOp> cuda_dropout(cuda::Device& device, float rate,
                                        std::int64_t elements_per_sample, DataType type) {
  return cuda::with_type(type, [&](auto zero) -> std::unique_ptr<DropoutOp> {
    return std::make_unique<CudaDropout<decltype(zero)>>(device, rate, elements_per_sample);
  });
}

}  // namespace fettle::kernels
