// Bound by bytes: forward reads the input and writes the output, backward the other way round. A
// thread takes a pack of neighbouring channels, 16 bytes, of one pixel, so that a warp accesses
// whole lines if there are enough channels.
//
// Backward gathers: a pixel of the input sums the gradients of the windows that hold it, in order
// of the windows. So no two threads write to one place, overlapping windows need neither atomics
// nor zeros beforehand, and the same batch gives the same bits. For max pooling, forward stores the
// place of each output in its window, one byte each (two if a window has more than 256); backward
// would have to read the whole input to find it again.
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/operations.h"

namespace fettle::kernels {
namespace {

struct Geometry {
  explicit Geometry(const PoolShape& shape)
      : kernel_height(static_cast<int>(shape.kernel_height)),
        kernel_width(static_cast<int>(shape.kernel_width)),
        stride(static_cast<int>(shape.stride)),
        in_height(static_cast<int>(shape.input.height)),
        in_width(static_cast<int>(shape.input.width)),
        out_height(static_cast<int>(shape.output().height)),
        out_width(static_cast<int>(shape.output().width)),
        channels(static_cast<int>(shape.input.channels)),
        share(1.0F / static_cast<float>(shape.kernel_height * shape.kernel_width)) {}

  int kernel_height, kernel_width, stride;
  int in_height, in_width, out_height, out_width, channels;
  float share;  // 1 / elements in a window
};

// A thread's work: channels [channel, channel + width) of a pixel of one sample. Cells are [samples
// x height] x [width x packs of channels].
struct Pixel {
  __device__ Pixel(std::int64_t row, std::int64_t column, int height, int channels, int width)
      : sample(row / height),
        y(static_cast<int>(row % height)),
        x(static_cast<int>(column) / (channels / width)),
        channel(static_cast<int>(column) % (channels / width) * width) {}

  std::int64_t sample;
  int y, x, channel;
};

__device__ std::int64_t input_offset(const Geometry& g, std::int64_t sample, int y, int x) {
  return ((sample * g.in_height + y) * g.in_width + x) * g.channels;
}

__device__ std::int64_t output_offset(const Geometry& g, std::int64_t sample, int y, int x) {
  return ((sample * g.out_height + y) * g.out_width + x) * g.channels;
}

// Calls visit(offset in elements from the window's first pixel, place in the window).
template <class Visit>
__device__ __forceinline__ void for_each_place(const Geometry& g, Visit visit) {
  int place = 0;
  for (int u = 0; u < g.kernel_height; ++u) {
    for (int v = 0; v < g.kernel_width; ++v, ++place) {
      visit((std::int64_t{u} * g.in_width + v) * g.channels, place);
    }
  }
}

template <int width, class T, class Place>
__global__ void max_forward_kernel(Geometry g, std::int64_t samples, const T* x, T* y,
                                   Place* places) {
  const std::int64_t columns = g.out_width * (g.channels / width);
  cuda::for_each_cell(samples * g.out_height, columns, [&](std::int64_t row, std::int64_t column) {
    const Pixel to(row, column, g.out_height, g.channels, width);
    const T* window = x + input_offset(g, to.sample, to.y * g.stride, to.x * g.stride) + to.channel;
    cuda::Pack<T, width> best = cuda::load_pack<width>(window);
    cuda::Pack<Place, width> best_places{};  // place 0: its pixel is in `best`
    for_each_place(g, [&](std::int64_t offset, int place) {
      const cuda::Pack<T, width> candidates = cuda::load_pack<width>(window + offset);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const float candidate = cuda::to_float(candidates.at[i]);
        // A NaN replaces any number, and no number replaces it, as in PyTorch.
        const bool is_nan = candidate != candidate;
        if (!(candidate > cuda::to_float(best.at[i])) && !is_nan) continue;
        best.at[i] = candidates.at[i];
        best_places.at[i] = static_cast<Place>(place);
      }
    });
    const std::int64_t result = output_offset(g, to.sample, to.y, to.x) + to.channel;
    cuda::store_pack(best, y + result);
    cuda::store_pack(best_places, places + result);
  });
}

template <int width, class T>
__global__ void average_forward_kernel(Geometry g, std::int64_t samples, const T* x, T* y) {
  const std::int64_t columns = g.out_width * (g.channels / width);
  cuda::for_each_cell(samples * g.out_height, columns, [&](std::int64_t row, std::int64_t column) {
    const Pixel to(row, column, g.out_height, g.channels, width);
    const T* window = x + input_offset(g, to.sample, to.y * g.stride, to.x * g.stride) + to.channel;
    float sums[width] = {};
    for_each_place(g, [&](std::int64_t offset, int) {
      const cuda::Pack<T, width> inputs = cuda::load_pack<width>(window + offset);
#pragma unroll
      for (int i = 0; i < width; ++i) sums[i] += cuda::to_float(inputs.at[i]);
    });
    cuda::Pack<T, width> means;
#pragma unroll
    for (int i = 0; i < width; ++i) means.at[i] = cuda::from_float<T>(sums[i] * g.share);
    cuda::store_pack(means, y + output_offset(g, to.sample, to.y, to.x) + to.channel);
  });
}

// The windows that hold an input, along one axis. The first is the first window that ends behind
// it.
struct Windows {
  __device__ Windows(int input, int kernel, int stride, int outputs)
      : first(input < kernel ? 0 : (input - kernel) / stride + 1),
        last(min(input / stride, outputs - 1)) {}
  int first, last;
};

// Calls visit(y and x of the output, place in its window) for each window that holds an input
// pixel.
template <class Visit>
__device__ __forceinline__ void for_each_window(const Geometry& g, const Pixel& of, Visit visit) {
  const Windows rows(of.y, g.kernel_height, g.stride, g.out_height);
  const Windows columns(of.x, g.kernel_width, g.stride, g.out_width);
  for (int p = rows.first; p <= rows.last; ++p) {
    for (int q = columns.first; q <= columns.last; ++q) {
      visit(p, q, (of.y - p * g.stride) * g.kernel_width + of.x - q * g.stride);
    }
  }
}

// Computes one pixel of dx in each thread. `places` is read for max pooling only.
template <PoolKind kind, int width, class T, class Place>
__global__ void backward_kernel(Geometry g, std::int64_t samples, const Place* places, const T* dy,
                                T* dx) {
  const std::int64_t columns = g.in_width * (g.channels / width);
  cuda::for_each_cell(samples * g.in_height, columns, [&](std::int64_t row, std::int64_t column) {
    const Pixel to(row, column, g.in_height, g.channels, width);
    float sums[width] = {};
    for_each_window(g, to, [&](int p, int q, int place) {
      const std::int64_t from = output_offset(g, to.sample, p, q) + to.channel;
      const cuda::Pack<T, width> gradients = cuda::load_pack<width>(dy + from);
      cuda::Pack<Place, width> chosen{};
      if constexpr (kind == PoolKind::kMax) chosen = cuda::load_pack<width>(places + from);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const bool receives = kind == PoolKind::kAverage || chosen.at[i] == place;
        if (receives) sums[i] += cuda::to_float(gradients.at[i]);
      }
    });
    const float share = kind == PoolKind::kAverage ? g.share : 1;
    cuda::Pack<T, width> result;
#pragma unroll
    for (int i = 0; i < width; ++i) result.at[i] = cuda::from_float<T>(sums[i] * share);
    cuda::store_pack(result, dx + input_offset(g, to.sample, to.y, to.x) + to.channel);
  });
}

// `Place`: the integer type of a place in a window.
template <class T, class Place>
class CudaPool : public PoolOp {
 public:
  // `places` is nullptr for average pooling.
  CudaPool(cuda::Device& device, const PoolShape& shape, std::unique_ptr<Memory> places)
      : device_(device), shape_(shape), geometry_(shape), places_(std::move(places)) {}

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    cuda::with_width<kWidth>(uses_packs(x, y), [&](auto width) {
      const cuda::LaunchShape grid = grid_over(samples, shape_.output(), width);
      const auto* from = static_cast<const T*>(x);
      auto* to = static_cast<T*>(y);
      if (places_ == nullptr) {
        cuda::launch(device_.stream(), grid, average_forward_kernel<width(), T>, geometry_, samples,
                     from, to);
      } else {
        cuda::launch(device_.stream(), grid, max_forward_kernel<width(), T, Place>, geometry_,
                     samples, from, to, places());
      }
    });
  }

  void backward(std::int64_t samples, ConstBuffer, ConstBuffer, ConstBuffer dy,
                Buffer dx) override {
    cuda::with_width<kWidth>(uses_packs(dy, dx), [&](auto width) {
      const cuda::LaunchShape grid = grid_over(samples, shape_.input, width);
      cuda::launch(device_.stream(), grid,
                   places_ == nullptr ? backward_kernel<PoolKind::kAverage, width(), T, Place>
                                      : backward_kernel<PoolKind::kMax, width(), T, Place>,
                   geometry_, samples, places(), static_cast<const T*>(dy), static_cast<T*>(dx));
    });
  }

 private:
  static constexpr int kWidth = cuda::kPackWidth<T>;

  bool uses_packs(ConstBuffer from, ConstBuffer to) const {
    return shape_.input.channels % kWidth == 0 &&
           cuda::is_aligned<kWidth>(static_cast<const T*>(from)) &&
           cuda::is_aligned<kWidth>(static_cast<const T*>(to));
  }

  cuda::LaunchShape grid_over(std::int64_t samples, const ImageShape& image, int width) const {
    return cuda::grid_over(samples * image.height, image.width * (image.channels / width));
  }

  Place* places() const {
    return places_ == nullptr ? nullptr : static_cast<Place*>(places_->data());
  }

  cuda::Device& device_;
  const PoolShape shape_;
  const Geometry geometry_;
  const std::unique_ptr<Memory> places_;  // places of the last forward's outputs in their windows
};

template <class Place>
Result<std::unique_ptr<PoolOp>> make_pool(cuda::Device& device, const PoolShape& shape,
                                          const PlanOptions& plan) {
  std::unique_ptr<Memory> places;
  if (shape.kind == PoolKind::kMax) {
    const std::int64_t count = plan.max_samples * shape.output().size();
    FETTLE_ASSIGN(places, device.allocate(count * std::int64_t{sizeof(Place)}));
  }
  return cuda::with_type(plan.type, [&](auto zero) -> std::unique_ptr<PoolOp> {
    return std::make_unique<CudaPool<decltype(zero), Place>>(device, shape, std::move(places));
  });
}

}  // namespace

Result<std::unique_ptr<PoolOp>> cuda_pool(cuda::Device& device, const PoolShape& shape,
                                          const PlanOptions& plan) {
  constexpr std::int64_t kPlacesInAByte = 256;
  if (shape.kernel_height * shape.kernel_width <= kPlacesInAByte) {
    return make_pool<std::uint8_t>(device, shape, plan);
  }
  return make_pool<std::uint16_t>(device, shape, plan);
}

}  // namespace fettle::kernels
