// Batches from a data set in the GPU's memory: gathered, augmented and normalised in one pass, so
// that a training step needs only its samples' indices from the host.
//
// Bound by bytes on an H100, 1 read and 2 (bf16) or 4 written for a pixel; small batches of small
// images are bound by the launch. A block takes a piece of one sample. Its first thread draws the
// sample's move while the others load the table of the 256 bytes' values into shared memory. The
// table gives the CPU's values, bit for bit, without a division a pixel. A thread writes four
// neighbouring values at once; it reads bytes one by one, because a shift breaks their alignment,
// but neighbouring threads read neighbours.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/gather/move.h"
#include "kernels/gather/values.h"

namespace fettle::kernels {
namespace cuda {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr std::int32_t kPiece = 4096;  // elements, a multiple of 4: sixteen a thread of 256
constexpr int kBytes = 256;

// The gathered data set, constant for one operation.
struct View {
  Samples samples;
  ImageLook look;
  std::int32_t elements;  // of a sample
  std::int32_t pieces;    // of a sample
};

// A block's part of the work: `size` elements of sample `number` of the batch, from `begin` on.
// Threads count from `begin`: a step past the last element of a large sample would exceed 32 bits.
struct Piece {
  std::int64_t number;
  std::int32_t begin;
  std::int32_t size;
};

__device__ __forceinline__ Piece piece_of_block(const View& view) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t begin = block % view.pieces * kPiece;
  return {block / view.pieces, begin, min(kPiece, view.elements - begin)};
}

// Converts pixels for the network. `Pixel` is std::uint8_t, looked up, or float, computed.
template <class Pixel, class T>
struct Converter {
  const T* table;
  double mean;
  double deviation;

  __device__ __forceinline__ T operator()(Pixel pixel) const {
    if constexpr (std::is_same_v<Pixel, std::uint8_t>) {
      return table[pixel];
    } else {
      return from_float<T>(normalized(pixel, mean, deviation));
    }
  }
};

template <class Pixel, class T>
struct MovedImage {
  const Pixel* from;
  Move move;
  std::int32_t height, width, channels;
  Converter<Pixel, T> convert;

  // Writes elements e to e + N - 1 of the image after its move.
  template <int N>
  __device__ __forceinline__ void write(std::int32_t e, T* to) const {
    const std::int32_t pixel = e / channels;
    std::int32_t channel = e - pixel * channels;
    std::int32_t row = pixel / width;
    std::int32_t column = pixel - row * width;
    Pack<T, N> values;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const Place place = place_before(move, height, width, row, column);
      const std::int32_t at = (place.row * width + place.column) * channels + channel;
      values.at[i] = convert(place.inside ? from[at] : Pixel{});  // outside: a pixel of 0
      // Advances to the next element without a division.
      if (++channel < channels) continue;
      channel = 0;
      if (++column < width) continue;
      column = 0;
      ++row;
    }
    store_pack(values, to + e);
  }
};

template <class Pixel, class T>
__global__ void __launch_bounds__(kMaxThreads)
    gather_images(View view, const T* values_of_bytes, const std::int64_t* indices,
                  const std::uint32_t* epoch, T* x, std::int32_t* labels) {
  constexpr int kPack = 4;
  __shared__ T table[kBytes];
  __shared__ Move move;
  const Piece piece = piece_of_block(view);
  const std::int64_t index = indices[piece.number];
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto threads = static_cast<std::int32_t>(blockDim.x);
  if (thread == 0) {
    move = moves(view.look) ? draw_move(view.look, *epoch, index) : Move{};
    if (piece.begin == 0) labels[piece.number] = view.samples.labels[index];  // once a sample
  }
  if constexpr (std::is_same_v<Pixel, std::uint8_t>) {
    for (int i = thread; i < kBytes; i += threads) table[i] = values_of_bytes[i];
  }
  __syncthreads();
  const ImageShape& shape = view.samples.shape;
  const MovedImage<Pixel, T> image{
      static_cast<const Pixel*>(view.samples.pixels) + index * view.elements,
      move,
      static_cast<std::int32_t>(shape.height),
      static_cast<std::int32_t>(shape.width),
      static_cast<std::int32_t>(shape.channels),
      {table, view.look.mean, view.look.deviation}};
  T* const to = x + piece.number * view.elements;
  // Samples begin on a pack's boundary if each has a multiple of its elements; pieces within a
  // sample always do (kPiece).
  if (view.elements % kPack == 0) {
    for (std::int32_t i = thread * kPack; i < piece.size; i += threads * kPack) {
      image.template write<kPack>(piece.begin + i, to);
    }
  } else {
    for (std::int32_t i = thread; i < piece.size; i += threads) {
      image.template write<1>(piece.begin + i, to);
    }
  }
}

// Gathers tokens of a text, with the next token as the label of each. One more token follows the
// last sample (Samples).
__global__ void __launch_bounds__(kMaxThreads)
    gather_tokens(View view, const std::int64_t* indices, std::int32_t* x, std::int32_t* labels) {
  const Piece piece = piece_of_block(view);
  const std::uint16_t* const from = static_cast<const std::uint16_t*>(view.samples.pixels) +
                                    indices[piece.number] * view.elements + piece.begin;
  const std::int64_t to = piece.number * view.elements + piece.begin;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < piece.size;
       i += static_cast<std::int32_t>(blockDim.x)) {
    x[to + i] = from[i];
    labels[to + i] = from[i + 1];
  }
}

class CudaGather final : public GatherOp {
 public:
  static Result<std::unique_ptr<GatherOp>> create(Device& device, const Samples& samples,
                                                  const ImageLook& look, DataType type) {
    auto made = std::make_unique<CudaGather>(device, samples, look, type);
    FETTLE_TRY(made->upload_table());
    return std::unique_ptr<GatherOp>(std::move(made));
  }
  CudaGather(Device& device, const Samples& samples, const ImageLook& look, DataType type)
      : device_(device),
        type_(type),
        view_{samples, look, static_cast<std::int32_t>(samples.shape.size()),
              static_cast<std::int32_t>((samples.shape.size() + kPiece - 1) / kPiece)} {}

  void run(std::int64_t samples, const std::int64_t* indices, const std::uint32_t* epoch, Buffer x,
           std::int32_t* labels) override {
    if (samples == 0) return;
    CHECK(samples <= 0x7FFFFFFF / view_.pieces, "more samples than CUDA has blocks");
    const LaunchShape shape{.blocks = blocks_for(samples * view_.pieces, 1)};
    if (view_.samples.type == PixelType::kToken) {
      launch(device_.stream(), shape, gather_tokens, view_, indices, static_cast<std::int32_t*>(x),
             labels);
      return;
    }
    with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      const auto kernel = view_.samples.type == PixelType::kByte ? gather_images<std::uint8_t, T>
                                                                 : gather_images<float, T>;
      launch(device_.stream(), shape, kernel, view_, static_cast<const T*>(table_->data()), indices,
             epoch, static_cast<T*>(x), labels);
    });
  }

 private:
  Status upload_table() {
    const ByteValues<float> values = values_of_bytes(view_.look);
    const ByteValues<std::uint16_t> rounded = round_values(values, type_);
    const bool wide = type_ == DataType::kFloat32;
    FETTLE_ASSIGN(table_, device_.allocate(kBytes * size_of(type_)));
    const void* const from = wide ? static_cast<const void*>(values.data()) : rounded.data();
    must_succeed(cudaMemcpyAsync(table_->data(), from,
                                 static_cast<std::size_t>(kBytes * size_of(type_)),
                                 cudaMemcpyHostToDevice, device_.stream()));
    must_succeed(cudaStreamSynchronize(device_.stream()));  // the copied values end with this scope
    return success();
  }

  Device& device_;
  const DataType type_;
  const View view_;
  std::unique_ptr<Memory> table_;
};

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<GatherOp>> cuda_gather(cuda::Device& device, const Samples& samples,
                                              const ImageLook& look, const PlanOptions& plan) {
  return cuda::CudaGather::create(device, samples, look, plan.type);
}

}  // namespace fettle::kernels
