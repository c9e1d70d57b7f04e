// Causal attention for CPUs; formulas as reference.cpp, in fp32.
//
// A head of a sample is small (its keys and values fit the second-level cache), so heads are the
// unit of parallel work and everything below runs on one core: the head's numbers are copied
// together, and sixteen queries at a time are multiplied with the keys before them in small matrix
// products (product.h). Neither pass holds more than sixteen rows of the attention matrix. A head's
// result does not depend on the number of threads.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/attention/product.h"
#include "kernels/bfloat16.h"
#include "kernels/exponential.h"
#include "kernels/fast_operations.h"
#include "kernels/lanes.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

constexpr std::int64_t kBlock = kHeadTileColumns;  // queries that are processed together

std::int64_t padded(std::int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

// One head's numbers, rows padded with zeros to `width` numbers and `length` rows.
struct HeadBuffers {
  HeadBuffers(std::int64_t length, std::int64_t width)
      : queries(length * width),
        keys(length * width),
        keys_transposed(length * width),
        values(length * width),
        values_transposed(length * width),
        y(length * width),
        dy(length * width),
        query_gradient(length * width),
        key_gradient(length * width),
        value_gradient(length * width),
        shares(kBlock * length),
        by_score(kBlock * length) {}

  AlignedArray<float> queries, keys, keys_transposed, values, values_transposed, y, dy;
  AlignedArray<float> query_gradient, key_gradient, value_gradient;
  AlignedArray<float> shares;    // p of a block of queries
  AlignedArray<float> by_score;  // ds of a block of queries
};

float sum_of(const Lanes& lanes) {
  float sum = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
}

// Turns a query's products with `count` keys into its softmax shares; the rest of the row, up to
// `end`, a multiple of eight, becomes 0. Returns log sum exp of the scores.
FETTLE_FOR_EACH_PROCESSOR float softmax_row(float* row, std::int64_t count, std::int64_t end,
                                            float scale) {
  // A score whose share is 0. Finite, so that no difference of infinities is NaN.
  constexpr float kNothing = -1e30F;
  std::fill(row + count, row + end, kNothing);
  Lanes largest = Lanes{} + kNothing;
  for (std::int64_t j = 0; j < end; j += kLanes) {
    const Lanes scores = load_lanes(row + j, AllLanes()) * scale;
    largest = scores > largest ? scores : largest;
    store_lanes(scores, row + j, AllLanes());
  }
  float top = largest[0];
  for (std::int64_t i = 1; i < kLanes; ++i) top = std::max(top, largest[i]);
  Lanes sums{};
  for (std::int64_t j = 0; j < end; j += kLanes) {
    const Lanes exponentials = exp_lanes(load_lanes(row + j, AllLanes()) - top);
    sums += exponentials;
    store_lanes(exponentials, row + j, AllLanes());
  }
  const float total = sum_of(sums);
  for (std::int64_t j = 0; j < end; j += kLanes) {
    store_lanes(load_lanes(row + j, AllLanes()) / total, row + j, AllLanes());
  }
  std::fill(row + count, row + end, 0.0F);
  return top + std::log(total);
}

// Recomputes a query's shares from its products with the keys and their log sum exp. Replaces
// `by_share`, the gradient with respect to the shares, by the gradient with respect to the
// products. `mean`: the mean of `by_share`, weighted by the shares.
FETTLE_FOR_EACH_PROCESSOR void softmax_row_backward(float* row, float* by_share, std::int64_t count,
                                                    std::int64_t end, float scale, float log_sum,
                                                    float mean) {
  for (std::int64_t j = 0; j < end; j += kLanes) {
    const Lanes shares = exp_lanes(load_lanes(row + j, AllLanes()) * scale - log_sum);
    const Lanes gradient = load_lanes(by_share + j, AllLanes());
    store_lanes(shares, row + j, AllLanes());
    store_lanes(scale * shares * (gradient - mean), by_share + j, AllLanes());
  }
  // Hidden keys: the loop above has computed values without meaning.
  std::fill(row + count, row + end, 0.0F);
  std::fill(by_share + count, by_share + end, 0.0F);
}

void narrow(float value, float& to) { to = value; }
void narrow(float value, std::uint16_t& to) { to = to_bfloat16(value); }

template <class Element>
class FastAttention : public AttentionOp {
 public:
  FastAttention(const AttentionShape& shape, const PlanOptions& plan)
      : shape_(shape),
        channels_(shape.channels()),
        length_(padded(shape.length)),
        width_(padded(shape.width)),
        scale_(1 / std::sqrt(static_cast<float>(shape.width))),
        threads_(omp_get_max_threads()),
        log_sums_(plan.max_samples * shape.heads * length_) {
    for (int i = 0; i < threads_; ++i) buffers_.emplace_back(length_, width_);
  }

  void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) override {
    const auto* input = static_cast<const Element*>(qkv);
    auto* output = static_cast<Element*>(y);
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t head = 0; head < samples * shape_.heads; ++head) {
      HeadBuffers& buffers = buffers_of_thread();
      read_head(input + offset_of(head, /*parts=*/3), buffers);
      forward_head(buffers, log_sums_.data() + head * length_);
      write_rows(buffers.y.data(), channels_, output + offset_of(head, /*parts=*/1));
    }
  }

  void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                Buffer dqkv) override {
    const auto* input = static_cast<const Element*>(qkv);
    auto* gradient = static_cast<Element*>(dqkv);
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t head = 0; head < samples * shape_.heads; ++head) {
      HeadBuffers& buffers = buffers_of_thread();
      const std::int64_t first = offset_of(head, /*parts=*/1);
      read_head(input + offset_of(head, /*parts=*/3), buffers);
      read_rows(static_cast<const Element*>(y) + first, channels_, buffers.y.data());
      read_rows(static_cast<const Element*>(dy) + first, channels_, buffers.dy.data());
      backward_head(buffers, log_sums_.data() + head * length_);
      Element* to = gradient + offset_of(head, /*parts=*/3);
      write_rows(buffers.query_gradient.data(), 3 * channels_, to);
      write_rows(buffers.key_gradient.data(), 3 * channels_, to + channels_);
      write_rows(buffers.value_gradient.data(), 3 * channels_, to + 2 * channels_);
    }
  }

 private:
  HeadBuffers& buffers_of_thread() {
    return buffers_[static_cast<std::size_t>(omp_get_thread_num())];
  }

  // Offset of a head's first number (heads count over all samples) if a token has `parts` x
  // channels.
  std::int64_t offset_of(std::int64_t head, std::int64_t parts) const {
    const std::int64_t sample = head / shape_.heads;
    return sample * shape_.length * parts * channels_ + head % shape_.heads * shape_.width;
  }

  void read_rows(const Element* from, std::int64_t stride, float* to) const {
    for (std::int64_t t = 0; t < shape_.length; ++t) {
      for (std::int64_t c = 0; c < shape_.width; ++c)
        to[t * width_ + c] = widen(from[t * stride + c]);
    }
  }

  void write_rows(const float* from, std::int64_t stride, Element* to) const {
    for (std::int64_t t = 0; t < shape_.length; ++t) {
      for (std::int64_t c = 0; c < shape_.width; ++c)
        narrow(from[t * width_ + c], to[t * stride + c]);
    }
  }

  void transpose(const float* rows, float* columns) const {
    for (std::int64_t t = 0; t < shape_.length; ++t) {
      for (std::int64_t c = 0; c < shape_.width; ++c)
        columns[c * length_ + t] = rows[t * width_ + c];
    }
  }

  void read_head(const Element* qkv, HeadBuffers& to) const {
    read_rows(qkv, 3 * channels_, to.queries.data());
    read_rows(qkv + channels_, 3 * channels_, to.keys.data());
    read_rows(qkv + 2 * channels_, 3 * channels_, to.values.data());
    transpose(to.keys.data(), to.keys_transposed.data());
  }

  // Computes C[kBlock, end] = A[kBlock, width] columns[width, end]: queries (or dy) with keys (or
  // values).
  void multiply_with_columns(const float* rows, const float* columns, std::int64_t end,
                             float* to) const {
    multiply_head({kBlock, end, shape_.width, {rows, width_, 1}, columns, length_, to, length_});
  }
  // Computes C[kBlock, width] = A[kBlock, end] rows[end, width].
  void multiply_with_rows(const float* block, const float* rows, std::int64_t end,
                          float* to) const {
    multiply_head({kBlock, width_, end, {block, length_, 1}, rows, width_, to, width_});
  }
  // Computes C[end, width] += A[kBlock, end]' rows[kBlock, width].
  void add_transposed(const float* block, const float* rows, std::int64_t end, float* to) const {
    multiply_head({end, width_, kBlock, {block, 1, length_}, rows, width_, to, width_, true});
  }

  // The last block may reach past shape_.length: its rows and keys there are zeros, and `at` and
  // `log_sums` have room for them (length_).
  void forward_head(HeadBuffers& at, float* log_sums) const {
    for (std::int64_t first = 0; first < shape_.length; first += kBlock) {
      const std::int64_t end = first + kBlock;  // number of keys that the block's last query sees
      multiply_with_columns(at.queries.data() + first * width_, at.keys_transposed.data(), end,
                            at.shares.data());
      for (std::int64_t i = 0; i < kBlock; ++i) {
        log_sums[first + i] =
            softmax_row(at.shares.data() + i * length_, first + i + 1, end, scale_);
      }
      multiply_with_rows(at.shares.data(), at.values.data(), end, at.y.data() + first * width_);
    }
  }

  // Rows past shape_.length, in the last block, have a dy of zero and so add nothing.
  void backward_head(HeadBuffers& at, const float* log_sums) const {
    transpose(at.values.data(), at.values_transposed.data());
    std::fill(at.key_gradient.begin(), at.key_gradient.end(), 0.0F);
    std::fill(at.value_gradient.begin(), at.value_gradient.end(), 0.0F);
    for (std::int64_t first = 0; first < shape_.length; first += kBlock) {
      const std::int64_t end = first + kBlock;
      const float* queries = at.queries.data() + first * width_;
      const float* dy = at.dy.data() + first * width_;
      multiply_with_columns(queries, at.keys_transposed.data(), end, at.shares.data());
      multiply_with_columns(dy, at.values_transposed.data(), end, at.by_score.data());
      for (std::int64_t i = 0; i < kBlock; ++i) {
        // y is the mean of the values v weighted by the shares, so dy y is that mean of dy v, of
        // by_share.
        const float mean = dot(dy + i * width_, at.y.data() + (first + i) * width_);
        softmax_row_backward(at.shares.data() + i * length_, at.by_score.data() + i * length_,
                             first + i + 1, end, scale_, log_sums[first + i], mean);
      }
      add_transposed(at.shares.data(), dy, end, at.value_gradient.data());
      add_transposed(at.by_score.data(), queries, end, at.key_gradient.data());
      multiply_with_rows(at.by_score.data(), at.keys.data(), end,
                         at.query_gradient.data() + first * width_);
    }
  }

  float dot(const float* a, const float* b) const {
    float sum = 0;
    for (std::int64_t c = 0; c < shape_.width; ++c) sum += a[c] * b[c];
    return sum;
  }

  const AttentionShape shape_;
  const std::int64_t channels_;
  const std::int64_t length_;  // padded; the rows beyond the sample are zero
  const std::int64_t width_;   // padded
  const float scale_;
  const int threads_;
  AlignedArray<float> log_sums_;      // of each query of the last forward
  std::vector<HeadBuffers> buffers_;  // of each thread
};

}  // namespace

std::unique_ptr<AttentionOp> fast_attention(const AttentionShape& shape, const PlanOptions& plan) {
  if (plan.type == DataType::kFloat32) return std::make_unique<FastAttention<float>>(shape, plan);
  return std::make_unique<FastAttention<std::uint16_t>>(shape, plan);
}

}  // namespace fettle::kernels
