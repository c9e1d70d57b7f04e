// Causal attention in one pass (Dao et al., 2022; Milakov and Gimelshein, 2018): tiles of keys and
// values stream by, and the softmax is corrected as larger scores appear, so no length x length
// matrix is ever written.
//
//   forward    y = softmax(Q K' / sqrt(width)) V; keeps log-sum-exp of each query's scores
//   backward   P is recomputed from Q, K and log-sum-exp; D = rowsum(dY Y)
//              dV = P' dY      dS = P (dY V' - D) / sqrt(width)      dQ = dS K      dK = dS' Q
//
// A block has one tile of queries (or, for dK and dV, of keys) of one head of one sample, eight
// threads a row, and processes the tiles before it (after it). Nothing is summed across blocks, so
// there are no atomics and the same batch gives the same bits. Products run on the fp32 units from
// shared memory, 4 length^2 width FLOP a head forward and 10 backward, halved by causality: bound
// by arithmetic, far below tensor cores. fp32 uses it, and cuDNN's version is compared with it.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels {
namespace {

using cuda::from_float;
using cuda::to_float;

constexpr int kMaxWidth = 256;
constexpr int kThreadsARow = 8;

// Rows of a tile: four tiles of fp32 fit the 48 KiB of shared memory that need no opt-in.
template <int kWidth>
constexpr int kRows = std::min(32, 2048 / kWidth);

struct Heads {
  int length;
  int heads;
  int width;
  int tiles;    // of one head's tokens
  float scale;  // 1 / sqrt(width)
  __device__ std::int64_t channels() const { return std::int64_t{heads} * width; }
  // The distance between tokens of qkv, each with the queries of all heads, then all keys, then all
  // values.
  __device__ std::int64_t input_stride() const { return 3 * channels(); }
};

// This block's head and tile, their offsets, and this thread's row.
template <int kWidth>
struct Place {
  __device__ explicit Place(const Heads& heads) {
    const std::int64_t block = blockIdx.x;
    const std::int64_t head = block / heads.tiles % heads.heads;
    const std::int64_t sample = block / heads.tiles / heads.heads;
    tile = static_cast<int>(block % heads.tiles);
    output = sample * heads.length * heads.channels() + head * heads.width;
    input = 3 * sample * heads.length * heads.channels() + head * heads.width;
    first_row = (sample * heads.heads + head) * heads.length;
    first_token = tile * kRows<kWidth>;
    row = static_cast<int>(threadIdx.x) / kThreadsARow;
    lane = static_cast<int>(threadIdx.x) % kThreadsARow;
    token = first_token + row;
  }
  int tile;
  std::int64_t output;     // in y and dy
  std::int64_t input;      // in qkv and dqkv: of the queries
  std::int64_t first_row;  // in log_sums and means
  int first_token;         // of the tile
  int row;                 // of the tile: a token, shared by this thread and seven others
  int lane;                // number of this thread among the eight
  int token;               // past the last one in the last tile: that row is computed, not written
};

// Tokens by channels of a head. One extra column puts a column's elements in different banks.
template <int kWidth>
using Tile = float[kRows<kWidth>][kWidth + 1];

template <int kWidth>
using Scores = float[kRows<kWidth>][kRows<kWidth> + 1];

// Loads the tile of tokens from `first` on. `from`: of token 0; `stride`: elements from token to
// token. Zeros past the last token and past the head's width.
template <int kWidth, class T>
__device__ void load_tile(const Heads& heads, const T* from, std::int64_t stride, int first,
                          Tile<kWidth>& tile) {
  for (int e = static_cast<int>(threadIdx.x); e < kRows<kWidth> * kWidth;
       e += static_cast<int>(blockDim.x)) {
    const int row = e / kWidth;
    const int c = e % kWidth;
    const bool inside = first + row < heads.length && c < heads.width;
    tile[row][c] = inside ? to_float(from[(first + row) * stride + c]) : 0.0F;
  }
}

// Loads when all threads are done with the previous tiles; all see the new tiles on return.
template <int kWidth, class T>
__device__ void load_keys_and_values(const Heads& heads, const T* input, int first,
                                     Tile<kWidth>& keys, Tile<kWidth>& values) {
  __syncthreads();
  load_tile<kWidth>(heads, input + heads.channels(), heads.input_stride(), first, keys);
  load_tile<kWidth>(heads, input + 2 * heads.channels(), heads.input_stride(), first, values);
  __syncthreads();
}

template <int kWidth>
__device__ float dot(const float (&a)[kWidth + 1], const float (&b)[kWidth + 1]) {
  float sum = 0;
#pragma unroll 8
  for (int c = 0; c < kWidth; ++c) sum += a[c] * b[c];
  return sum;
}

// Returns the sum (the maximum) of the values of a row's eight threads to each of them. They are
// aligned neighbours in a warp, so exchanges at distances 4, 2 and 1 stay within the row. All
// threads of a warp have to call it.
__device__ float row_sum(float value) {
  for (int reach = kThreadsARow / 2; reach > 0; reach /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, reach);
  }
  return value;
}

__device__ float row_max(float value) {
  for (int reach = kThreadsARow / 2; reach > 0; reach /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, reach));
  }
  return value;
}

// Adds factors[row][k] x tile[k][.] to sums[.], for this thread's channels: lane, lane + 8, ...
template <int kWidth>
__device__ void add_rows(const float (&factors)[kRows<kWidth> + 1], const Tile<kWidth>& tile,
                         int lane, float (&sums)[kWidth / kThreadsARow]) {
  for (int k = 0; k < kRows<kWidth>; ++k) {
    const float factor = factors[k];
#pragma unroll
    for (int i = 0; i < kWidth / kThreadsARow; ++i) {
      sums[i] += factor * tile[k][lane + i * kThreadsARow];
    }
  }
}

template <int kWidth, class T>
__device__ void write_row(const Heads& heads, const float (&sums)[kWidth / kThreadsARow],
                          float factor, int lane, T* to) {
#pragma unroll
  for (int i = 0; i < kWidth / kThreadsARow; ++i) {
    const int c = lane + i * kThreadsARow;
    if (c < heads.width) to[c] = from_float<T>(sums[i] * factor);
  }
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kRows<kWidth>* kThreadsARow)
    forward_attention(Heads heads, const T* __restrict__ qkv, T* __restrict__ y,
                      float* __restrict__ log_sums) {
  __shared__ Tile<kWidth> queries;
  __shared__ Tile<kWidth> keys;
  __shared__ Tile<kWidth> values;
  __shared__ Scores<kWidth> shares;
  const Place<kWidth> place(heads);
  const int row = place.row, lane = place.lane, query = place.token;
  const T* const input = qkv + place.input;
  // Others see the queries after the barriers of load_keys_and_values.
  load_tile<kWidth>(heads, input, heads.input_stride(), place.first_token, queries);
  float sums[kWidth / kThreadsARow] = {};
  float largest = -INFINITY;  // score so far of this row's query
  float total = 0;            // of exp(score - largest); `sums` is the same, times the values
  for (int tile = 0; tile <= place.tile; ++tile) {  // later tiles are hidden from these queries
    const int first = tile * kRows<kWidth>;
    load_keys_and_values<kWidth>(heads, input, first, keys, values);
    float tile_largest = largest;
    for (int k = lane; k < kRows<kWidth>; k += kThreadsARow) {
      const float score =
          first + k <= query ? heads.scale * dot<kWidth>(queries[row], keys[k]) : -INFINITY;
      shares[row][k] = score;
      tile_largest = fmaxf(tile_largest, score);
    }
    // Finite: every query may see key 0, which is in the first tile. So the difference below is
    // never one of two infinities, and in the first tile the correction is exp(-inf) = 0.
    tile_largest = row_max(tile_largest);
    const float correction = expf(largest - tile_largest);
    float tile_total = 0;
    for (int k = lane; k < kRows<kWidth>; k += kThreadsARow) {
      shares[row][k] = expf(shares[row][k] - tile_largest);
      tile_total += shares[row][k];
    }
    total = total * correction + row_sum(tile_total);
    largest = tile_largest;
    __syncwarp();  // a row's threads are of one warp
#pragma unroll
    for (float& sum : sums) sum *= correction;
    add_rows<kWidth>(shares[row], values, lane, sums);
  }
  if (query >= heads.length) return;  // not earlier: all threads take part in the barriers
  write_row<kWidth>(heads, sums, 1 / total, lane, y + place.output + query * heads.channels());
  if (lane == 0) log_sums[place.first_row + query] = largest + logf(total);
}

// Computes means[query] = dot(dy, y) of the query: D above, the mean of the gradients of its
// shares, weighted by the shares. `rows`: queries of all heads and samples. Eight threads a row, as
// everywhere here.
template <class T>
__global__ void mean_gradients(Heads heads, std::int64_t rows, const T* __restrict__ y,
                               const T* __restrict__ dy, float* __restrict__ means) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kThreadsARow;
  const int lane = static_cast<int>(threadIdx.x) % kThreadsARow;
  const std::int64_t head = row / heads.length % heads.heads;
  const std::int64_t sample = row / heads.length / heads.heads;
  const std::int64_t first =
      (sample * heads.length + row % heads.length) * heads.channels() + head * heads.width;
  float sum = 0;
  // Threads past the last row read nothing, but take part in row_sum().
  for (int c = lane; row < rows && c < heads.width; c += kThreadsARow) {
    sum += to_float(y[first + c]) * to_float(dy[first + c]);
  }
  sum = row_sum(sum);
  if (row < rows && lane == 0) means[row] = sum;
}

// Operands of both backward kernels.
template <class T>
struct Saved {
  const T* qkv;
  const T* dy;
  const float* log_sums;
  const float* means;
};

// Loads when all threads are done with the previous tiles; all see the new tiles on return.
template <int kWidth, class T>
__device__ void load_queries_and_gradients(const Heads& heads, const Saved<T>& saved,
                                           const Place<kWidth>& place, int first,
                                           Tile<kWidth>& queries, Tile<kWidth>& gradients) {
  __syncthreads();
  load_tile<kWidth>(heads, saved.qkv + place.input, heads.input_stride(), first, queries);
  load_tile<kWidth>(heads, saved.dy + place.output, heads.channels(), first, gradients);
  __syncthreads();
}

// The share of a key in a query, and the gradient of the unscaled product q k; zero if the query
// may not see the key.
struct Pair {
  float share = 0;
  float gradient = 0;
};

template <int kWidth>
__device__ Pair pair_of(const Heads& heads, int query, int key, const float (&q)[kWidth + 1],
                        const float (&k)[kWidth + 1], const float (&v)[kWidth + 1],
                        const float (&dy)[kWidth + 1], float log_sum, float mean) {
  // A query past the last token has no log_sum; a key past it is behind every query that has one.
  if (key > query || query >= heads.length) return {};
  const float share = expf(heads.scale * dot<kWidth>(q, k) - log_sum);
  return {share, heads.scale * share * (dot<kWidth>(dy, v) - mean)};
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kRows<kWidth>* kThreadsARow)
    query_gradients(Heads heads, Saved<T> saved, T* __restrict__ dqkv) {
  __shared__ Tile<kWidth> queries;
  __shared__ Tile<kWidth> keys;
  __shared__ Tile<kWidth> values;
  __shared__ Tile<kWidth> gradients;
  __shared__ Scores<kWidth> score_gradients;
  const Place<kWidth> place(heads);
  const int row = place.row, lane = place.lane, query = place.token;
  const bool inside = query < heads.length;
  const float log_sum = inside ? saved.log_sums[place.first_row + query] : 0;  // 0 is never used
  const float mean = inside ? saved.means[place.first_row + query] : 0;
  load_queries_and_gradients(heads, saved, place, place.first_token, queries, gradients);
  float sums[kWidth / kThreadsARow] = {};
  for (int tile = 0; tile <= place.tile; ++tile) {  // later tiles are hidden from these queries
    const int first = tile * kRows<kWidth>;
    load_keys_and_values<kWidth>(heads, saved.qkv + place.input, first, keys, values);
    for (int k = lane; k < kRows<kWidth>; k += kThreadsARow) {
      score_gradients[row][k] = pair_of<kWidth>(heads, query, first + k, queries[row], keys[k],
                                                values[k], gradients[row], log_sum, mean)
                                    .gradient;
    }
    __syncwarp();
    add_rows<kWidth>(score_gradients[row], keys, lane, sums);
  }
  if (!inside) return;
  write_row<kWidth>(heads, sums, /*factor=*/1, lane,
                    dqkv + place.input + query * heads.input_stride());
}

// Rows are keys here, and the streaming tiles hold queries, from this tile's own on, because
// earlier queries may not see its keys. Shares and gradients of scores use `factors` in turn.
template <class T, int kWidth>
__global__ void __launch_bounds__(kRows<kWidth>* kThreadsARow)
    key_gradients(Heads heads, Saved<T> saved, T* __restrict__ dqkv) {
  __shared__ Tile<kWidth> queries;
  __shared__ Tile<kWidth> keys;
  __shared__ Tile<kWidth> values;
  __shared__ Tile<kWidth> gradients;
  __shared__ Scores<kWidth> factors;
  const Place<kWidth> place(heads);
  const int row = place.row, lane = place.lane, key = place.token;
  load_keys_and_values<kWidth>(heads, saved.qkv + place.input, place.first_token, keys, values);
  float key_sums[kWidth / kThreadsARow] = {};
  float value_sums[kWidth / kThreadsARow] = {};
  for (int tile = place.tile; tile < heads.tiles; ++tile) {
    const int first = tile * kRows<kWidth>;
    load_queries_and_gradients(heads, saved, place, first, queries, gradients);
    constexpr int kEach = kRows<kWidth> / kThreadsARow;
    float score_gradients[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int q = lane + i * kThreadsARow;
      const bool inside = first + q < heads.length;
      const std::int64_t at = place.first_row + first + q;
      const Pair pair =
          pair_of<kWidth>(heads, first + q, key, queries[q], keys[row], values[row], gradients[q],
                          inside ? saved.log_sums[at] : 0, inside ? saved.means[at] : 0);
      factors[row][q] = pair.share;
      score_gradients[i] = pair.gradient;
    }
    __syncwarp();  // a row's threads are of one warp, and share factors[row] among themselves
    add_rows<kWidth>(factors[row], gradients, lane, value_sums);
    __syncwarp();  // the shares are used by all threads of the row
#pragma unroll
    for (int i = 0; i < kEach; ++i) factors[row][lane + i * kThreadsARow] = score_gradients[i];
    __syncwarp();
    add_rows<kWidth>(factors[row], queries, lane, key_sums);
  }
  if (key >= heads.length) return;
  T* output = dqkv + place.input + key * heads.input_stride();
  write_row<kWidth>(heads, key_sums, /*factor=*/1, lane, output + heads.channels());
  write_row<kWidth>(heads, value_sums, /*factor=*/1, lane, output + 2 * heads.channels());
}

// Calls function(std::integral_constant<int, kWidth>) with the smallest sufficient width. Requires
// width <= kMaxWidth.
template <class Function>
void with_width(std::int64_t width, Function function) {
  if (width <= 32) return function(std::integral_constant<int, 32>{});
  if (width <= 64) return function(std::integral_constant<int, 64>{});
  if (width <= 128) return function(std::integral_constant<int, 128>{});
  function(std::integral_constant<int, kMaxWidth>{});
}

class OwnAttention : public AttentionOp {
 public:
  OwnAttention(cuda::Device& device, const AttentionShape& shape, DataType type, Buffer log_sums,
               std::unique_ptr<Memory> own_log_sums, std::unique_ptr<Memory> means)
      : device_(device),
        shape_(shape),
        type_(type),
        log_sums_(static_cast<float*>(log_sums)),
        own_log_sums_(std::move(own_log_sums)),
        means_(std::move(means)) {}

  void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) override {
    run([&](auto zero, auto width) {
      using T = decltype(zero);
      constexpr int kWidth = decltype(width)::value;
      launch(samples, kRows<kWidth>, forward_attention<T, kWidth>, static_cast<const T*>(qkv),
             static_cast<T*>(y), log_sums_);
    });
  }

  void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                Buffer dqkv) override {
    run([&](auto zero, auto width) {
      using T = decltype(zero);
      constexpr int kWidth = decltype(width)::value;
      const auto* gradient = static_cast<const T*>(dy);
      const std::int64_t rows = samples * shape_.heads * shape_.length;
      constexpr unsigned kMeanThreads = 256;
      cuda::launch(
          device_.stream(),
          {.blocks = cuda::blocks_for(rows * kThreadsARow, kMeanThreads), .threads = kMeanThreads},
          mean_gradients<T>, heads(kRows<kWidth>), rows, static_cast<const T*>(y), gradient,
          means());
      const Saved<T> saved{static_cast<const T*>(qkv), gradient, log_sums_, means()};
      // The first writes the queries' part of dqkv, the second that of keys and values.
      launch(samples, kRows<kWidth>, query_gradients<T, kWidth>, saved, static_cast<T*>(dqkv));
      launch(samples, kRows<kWidth>, key_gradients<T, kWidth>, saved, static_cast<T*>(dqkv));
    });
  }

 private:
  template <class Function>
  void run(Function function) {
    cuda::with_type(type_, [&](auto zero) {
      with_width(shape_.width, [&](auto width) { function(zero, width); });
    });
  }

  Heads heads(int rows) const {
    const int length = static_cast<int>(shape_.length);
    return {length, static_cast<int>(shape_.heads), static_cast<int>(shape_.width),
            (length + rows - 1) / rows, 1 / std::sqrt(static_cast<float>(shape_.width))};
  }

  // Launches one block for each tile of `rows` tokens of each head of each sample.
  template <class Kernel, class... Arguments>
  void launch(std::int64_t samples, int rows, Kernel kernel, Arguments... arguments) {
    const Heads all = heads(rows);
    cuda::launch(device_.stream(),
                 {.blocks = static_cast<unsigned>(samples * shape_.heads * all.tiles),
                  .threads = static_cast<unsigned>(rows * kThreadsARow)},
                 kernel, all, arguments...);
  }

  float* means() const { return static_cast<float*>(means_->data()); }

  cuda::Device& device_;
  const AttentionShape shape_;
  const DataType type_;
  float* const log_sums_;                       // of each query of the last forward
  const std::unique_ptr<Memory> own_log_sums_;  // storage of log_sums_; nullptr: not owned
  const std::unique_ptr<Memory> means_;         // of each query of a backward
};

}  // namespace

Result<std::unique_ptr<AttentionOp>> own_attention(cuda::Device& device,
                                                   const AttentionShape& shape,
                                                   const PlanOptions& plan, Buffer log_sums) {
  if (shape.width > kMaxWidth) {
    return invalid("the width of a head is " + std::to_string(shape.width) + ", on a GPU at most " +
                   std::to_string(kMaxWidth) + ": use more heads");
  }
  // Forward and backward keep one float for each query of each head.
  const std::int64_t rows = plan.max_samples * shape.heads * shape.length;
  const auto bytes = rows * static_cast<std::int64_t>(sizeof(float));
  std::unique_ptr<Memory> own_log_sums;
  if (log_sums == nullptr) {  // not shared with the passes of a library
    FETTLE_ASSIGN(own_log_sums, device.allocate(bytes));
    log_sums = own_log_sums->data();
  }
  FETTLE_ASSIGN(auto means, device.allocate(bytes));
  return std::unique_ptr<AttentionOp>(std::make_unique<OwnAttention>(
      device, shape, plan.type, log_sums, std::move(own_log_sums), std::move(means)));
}

}  // namespace fettle::kernels
