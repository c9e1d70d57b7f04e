// Bound by bytes: forward reads two rows a token and writes one, backward reads dy twice. A thread
// takes a pack of neighbouring channels, 16 bytes.
//
// Backward is a scatter-add. Atomics would vary the order of its sums; one thread a channel that
// walks all tokens (the reference's order) would leave the GPU idle. Here the tokens are sorted
// first (sort.h), so a token's rows of dy lie in one run of the sorted list. The list is cut into
// chunks of 32 places, and each chunk is summed by threads of its own, in order:
//
//   sorted   a a a a a a b b | b b b b b b b b | b b c d d d d e      (chunks of 8 here)
//   runs     ----a------ -b------------------------- c --d---- e
//
// A run that lies within a chunk (a, c, d) is added to the gradient at once. Otherwise (b), each
// chunk stores its part, and a second kernel sums the parts, in order. So a token that is a sixth
// of the text keeps as many threads busy as 50,000 rare tokens, and the same batch gives the same
// bits. Only rows of tokens that occur are touched, not a whole vocabulary's gradients.
#include <algorithm>
#include <limits>
#include <string>

#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/operations.h"
#include "kernels/embedding/sort.h"

namespace fettle::kernels {
namespace {

constexpr int kChunk = 32;  // places
// Rows that a thread loads before it sums the first.
constexpr int kRowsAtOnce = 4;

// ---- Forward -----------------------------------------------------------------------------------

template <int width, class T>
__global__ void forward_kernel(std::int64_t count, int length, int channels,
                               const std::int32_t* tokens, const T* table, const T* positions,
                               T* y) {
  cuda::for_each_cell(count, channels / width, [&](std::int64_t i, std::int64_t column) {
    const std::int64_t c = column * width;
    const auto row = cuda::load_pack<width>(table + std::int64_t{tokens[i]} * channels + c);
    const auto place = cuda::load_pack<width>(positions + i % length * channels + c);
    cuda::Pack<T, width> sum;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      sum.at[j] = cuda::from_float<T>(cuda::to_float(row.at[j]) + cuda::to_float(place.at[j]));
    }
    cuda::store_pack(sum, y + i * channels + c);
  });
}

// ---- Backward ----------------------------------------------------------------------------------

// Sums of `width` neighbouring channels.
template <int width>
struct Sums {
  cuda::Pack<float, width> of{};

  __device__ void read(const float* from) { of = cuda::load_pack<width>(from); }
  __device__ void write(float* to) const { cuda::store_pack(of, to); }
  template <class T>
  __device__ void add(const cuda::Pack<T, width>& row) {
#pragma unroll
    for (int j = 0; j < width; ++j) of.at[j] += cuda::to_float(row.at[j]);
  }
  // Adds row(0) to row(count - 1), in order.
  template <class Row>
  __device__ void add_rows(std::int64_t count, Row row) {
#pragma unroll kRowsAtOnce
    for (std::int64_t i = 0; i < count; ++i) add(cuda::load_pack<width>(row(i)));
  }
};

template <int width, class T>
__global__ void add_positions_kernel(std::int64_t samples, int length, int channels, const T* dy,
                                     float* gradient) {
  cuda::for_each_cell(length, channels / width, [&](std::int64_t t, std::int64_t column) {
    const std::int64_t first = t * channels + column * width;
    const std::int64_t sample = std::int64_t{length} * channels;
    Sums<width> sums;
    sums.read(gradient + first);
    sums.add_rows(samples, [&](std::int64_t s) { return dy + s * sample + first; });
    sums.write(gradient + first);
  });
}

// The sorted tokens, cut into chunks.
struct Chunks {
  cuda::TokenPlaces sorted;
  std::int32_t count = 0;

  // The token at `i`; -1 outside the list.
  __device__ std::int32_t token(std::int32_t i) const {
    return i >= 0 && i < count ? sorted.tokens[i] : -1;
  }
  __device__ std::int32_t first(std::int64_t chunk) const {
    return static_cast<std::int32_t>(chunk) * kChunk;
  }
  __device__ std::int32_t last(std::int64_t chunk) const {
    return min(first(chunk) + kChunk, count);
  }
};

// Parts of runs that do not lie within a chunk: [chunks][2][channels]. The first belongs to the run
// that begins before the chunk, even if it ends after it; the second to a run that begins in the
// chunk.
__device__ float* part_of(float* parts, std::int64_t chunk, bool begins_before, int channels) {
  return parts + (chunk * 2 + (begins_before ? 0 : 1)) * channels;
}

template <int width, class T>
__global__ void add_chunks_kernel(Chunks chunks, int channels, const T* dy, float* gradient,
                                  float* parts) {
  const std::int64_t rows = (chunks.count + kChunk - 1) / kChunk;
  cuda::for_each_cell(rows, channels / width, [&](std::int64_t chunk, std::int64_t column) {
    const std::int64_t c = column * width;
    const std::int32_t last = chunks.last(chunk);
    for (std::int32_t begin = chunks.first(chunk), end = begin; begin < last; begin = end) {
      const std::int32_t token = chunks.token(begin);
      while (end < last && chunks.token(end) == token) ++end;
      // Outside the list token() is -1, which is no token.
      const bool begins_before = chunks.token(begin - 1) == token;
      const bool whole = !begins_before && chunks.token(end) != token;
      float* total = gradient + std::int64_t{token} * channels + c;
      Sums<width> sums;
      if (whole) sums.read(total);
      sums.add_rows(end - begin, [&](std::int64_t i) {
        return dy + std::int64_t{chunks.sorted.places[begin + i]} * channels + c;
      });
      sums.write(whole ? total : part_of(parts, chunk, begins_before, channels) + c);
    }
  });
}

// Returns the end of the run of `token`, which holds `begin`.
__device__ std::int32_t end_of_run(const Chunks& chunks, std::int32_t token, std::int32_t begin) {
  std::int32_t end = chunks.count;
  while (begin < end) {
    const std::int32_t middle = begin + (end - begin) / 2;
    if (chunks.token(middle) == token) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return end;
}

// Sums a run's parts, in the chunk where a run begins that continues behind it.
template <int width>
__global__ void add_parts_kernel(Chunks chunks, int channels, float* parts, float* gradient) {
  const std::int64_t rows = (chunks.count + kChunk - 1) / kChunk;
  cuda::for_each_cell(rows, channels / width, [&](std::int64_t chunk, std::int64_t column) {
    const std::int32_t token = chunks.token(chunks.last(chunk) - 1);  // at the chunk's end
    const bool begins_before = chunks.token(chunks.first(chunk) - 1) == token;
    // An earlier chunk sums this run, or add_chunks_kernel has added all of it.
    if (begins_before || chunks.token(chunks.last(chunk)) != token) return;
    const std::int64_t c = column * width;
    float* total = gradient + std::int64_t{token} * channels + c;
    Sums<width> sums;
    sums.read(total);
    sums.add(cuda::load_pack<width>(part_of(parts, chunk, /*begins_before=*/false, channels) + c));
    const std::int64_t last_chunk = (end_of_run(chunks, token, chunks.last(chunk)) - 1) / kChunk;
    sums.add_rows(last_chunk - chunk, [&](std::int64_t i) {
      return part_of(parts, chunk + 1 + i, /*begins_before=*/true, channels) + c;
    });
    sums.write(total);
  });
}

// ---- On the host -------------------------------------------------------------------------------

// Layout of backward's workspace.
struct Scratch {
  Scratch(std::int64_t tokens, std::int64_t channels)
      : list_bytes(rounded_up(tokens * std::int64_t{sizeof(std::int32_t)})),
        parts_bytes(rounded_up((tokens + kChunk - 1) / kChunk * 2 * channels *
                               std::int64_t{sizeof(float)})) {}

  static std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
  std::int64_t bytes() const { return 4 * list_bytes + parts_bytes; }

  // Returns one of four lists: tokens and their places, in both buffers of the sort.
  std::int32_t* list(std::byte* begin, int which) const {
    return reinterpret_cast<std::int32_t*>(begin + which * list_bytes);
  }
  float* parts(std::byte* begin) const { return reinterpret_cast<float*>(begin + 4 * list_bytes); }

  std::int64_t list_bytes;
  std::int64_t parts_bytes;
};

template <class T>
class CudaEmbedding : public EmbeddingOp {
 public:
  CudaEmbedding(cuda::Device& device, const EmbeddingShape& shape, const Scratch& workspace)
      : device_(device),
        shape_(shape),
        workspace_(workspace),
        length_(static_cast<int>(shape.length)),
        channels_(static_cast<int>(shape.channels)) {}

  void forward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer table,
               ConstBuffer positions, Buffer y) override {
    const auto* rows = static_cast<const T*>(table);
    const auto* places = static_cast<const T*>(positions);
    auto* output = static_cast<T*>(y);
    const std::int64_t count = samples * shape_.length;
    cuda::with_width<kWidth>(uses_packs(rows, places, output), [&](auto width) {
      cuda::launch(device_.stream(), grid(count, width), forward_kernel<width(), T>, count, length_,
                   channels_, tokens, rows, places, output);
    });
  }

  void backward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer dy,
                float* table_gradient, float* positions_gradient) override {
    const auto* gradient = static_cast<const T*>(dy);
    const bool packs = uses_packs(gradient, table_gradient, positions_gradient);
    cuda::with_width<kWidth>(packs, [&](auto width) {
      cuda::launch(device_.stream(), grid(shape_.length, width), add_positions_kernel<width(), T>,
                   samples, length_, channels_, gradient, positions_gradient);
      add_to_table<width()>(samples, tokens, gradient, table_gradient);
    });
  }

 private:
  static constexpr int kWidth = cuda::kPackWidth<T>;

  template <class... Pointers>
  bool uses_packs(Pointers... pointers) const {
    return shape_.channels % kWidth == 0 && (cuda::is_aligned<kWidth>(pointers) && ...);
  }

  cuda::LaunchShape grid(std::int64_t rows, int width) const {
    return cuda::grid_over(rows, channels_ / width);
  }

  template <int width>
  void add_to_table(std::int64_t samples, const std::int32_t* tokens, const T* dy,
                    float* gradient) {
    auto* begin = static_cast<std::byte*>(device_.scratch(workspace_.bytes()));
    // Fits: cuda_embedding() has checked the maximum.
    const auto count = static_cast<std::int32_t>(samples * shape_.length);
    const Chunks chunks{cuda::sort_tokens(device_, shape_.vocabulary, count, tokens,
                                          {workspace_.list(begin, 0), workspace_.list(begin, 1)},
                                          {workspace_.list(begin, 2), workspace_.list(begin, 3)}),
                        count};
    float* parts = workspace_.parts(begin);
    const std::int64_t rows = (count + kChunk - 1) / kChunk;
    cuda::launch(device_.stream(), grid(rows, width), add_chunks_kernel<width, T>, chunks,
                 channels_, dy, gradient, parts);
    // A separate launch: it reads the parts that all blocks of the first have written.
    cuda::launch(device_.stream(), grid(rows, width), add_parts_kernel<width>, chunks, channels_,
                 parts, gradient);
  }

  cuda::Device& device_;
  const EmbeddingShape shape_;
  const Scratch workspace_;
  const int length_, channels_;
};

}  // namespace

Result<std::unique_ptr<EmbeddingOp>> cuda_embedding(cuda::Device& device,
                                                    const EmbeddingShape& shape,
                                                    const PlanOptions& plan) {
  const std::int64_t tokens = plan.max_samples * shape.length;
  // Places are 32 bits, including the end of the last chunk, which is rounded up.
  if (tokens > std::numeric_limits<std::int32_t>::max() - kChunk) {
    return invalid("an embedding of " + std::to_string(tokens) +
                   " tokens at once: expected fewer than 2^31; take fewer samples at a time");
  }
  const Scratch workspace(tokens, shape.channels);
  FETTLE_TRY(device.reserve_scratch(workspace.bytes()));
  return cuda::with_type(plan.type, [&](auto zero) -> std::unique_ptr<EmbeddingOp> {
    return std::make_unique<CudaEmbedding<decltype(zero)>>(device, shape, workspace);
  });
}

}  // namespace fettle::kernels
