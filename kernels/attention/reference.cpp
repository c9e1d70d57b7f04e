// Causal multi-head self-attention (Vaswani et al. 2017), CPU reference.
//
// Every head of every sample by itself; for a query i and the keys j <= i:
//   forward    s[i, j] = q[i] k[j] / sqrt(width),  p[i, .] = softmax(s[i, .]),
//              y[i] = sum over j of p[i, j] v[j]
//   backward   e[i, j] = dy[i] v[j],  ds[i, j] = p[i, j] (e[i, j] - dy[i] y[i])
//              dv[j] = sum over i of p[i, j] dy[i]
//              dq[i] = sum over j of ds[i, j] k[j] / sqrt(width),  dk[j] likewise with q[i]
//
// Only log sum exp s[i, .] is kept for backward, which recomputes p from it: the p of all heads
// would be as large as all other activations together. Sums run in double, in order of j (of i for
// dk and dv).
#include <algorithm>
#include <cmath>

#include "kernels/reference/floats.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

double dot(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t c = 0; c < count; ++c) sum += static_cast<double>(a[c]) * b[c];
  return sum;
}

void add_scaled(double factor, const float* from, std::int64_t count, double* to) {
  for (std::int64_t c = 0; c < count; ++c) to[c] += factor * from[c];
}

class ReferenceAttention : public AttentionOp {
 public:
  ReferenceAttention(const AttentionShape& shape, const PlanOptions& plan)
      : shape_(shape),
        channels_(shape.channels()),
        scale_(1 / std::sqrt(static_cast<double>(shape.width))),
        qkv_(plan.type, 3 * elements(plan.max_samples)),
        y_(plan.type, elements(plan.max_samples)),
        dy_(plan.type, elements(plan.max_samples)),
        dqkv_(plan.type, 3 * elements(plan.max_samples)),
        log_sums_(plan.max_samples * shape.heads * shape.length),
        shares_(shape.length),
        query_sums_(shape.width),
        key_sums_(shape.length * shape.width),
        value_sums_(shape.length * shape.width) {}

  void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) override {
    const float* input = qkv_.read(qkv, 3 * elements(samples));
    float* output = y_.target(y);
    for_each_head(samples, [&](std::int64_t sample, std::int64_t head) {
      const Head at = head_at(input, sample, head);
      float* out = output + elements(sample) + head * shape_.width;
      for (std::int64_t i = 0; i < shape_.length; ++i, out += channels_) forward_query(at, i, out);
    });
    y_.write(y, elements(samples));
  }

  void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                Buffer dqkv) override {
    const float* input = qkv_.read(qkv, 3 * elements(samples));
    const float* output = y_.read(y, elements(samples));
    const float* gradient = dy_.read(dy, elements(samples));
    float* input_gradient = dqkv_.target(dqkv);
    for_each_head(samples, [&](std::int64_t sample, std::int64_t head) {
      const std::int64_t first = elements(sample) + head * shape_.width;
      backward_head(head_at(input, sample, head), output + first, gradient + first,
                    input_gradient + 3 * elements(sample) + head * shape_.width);
    });
    dqkv_.write(dqkv, 3 * elements(samples));
  }

 private:
  // The first query, key and value of one head of one sample; `stride` leads to the next token.
  struct Head {
    const float* queries;
    const float* keys;
    const float* values;
    std::int64_t stride;
    std::int64_t first_row;  // in log_sums_
  };

  std::int64_t elements(std::int64_t samples) const { return samples * shape_.length * channels_; }

  template <class Function>
  void for_each_head(std::int64_t samples, Function function) const {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (std::int64_t head = 0; head < shape_.heads; ++head) function(sample, head);
    }
  }

  Head head_at(const float* qkv, std::int64_t sample, std::int64_t head) const {
    const float* queries = qkv + 3 * elements(sample) + head * shape_.width;
    return {queries, queries + channels_, queries + 2 * channels_, 3 * channels_,
            (sample * shape_.heads + head) * shape_.length};
  }

  double score(const Head& at, std::int64_t i, std::int64_t j) const {
    return scale_ * dot(at.queries + i * at.stride, at.keys + j * at.stride, shape_.width);
  }

  void forward_query(const Head& at, std::int64_t i, float* y) {
    double largest = -INFINITY;
    for (std::int64_t j = 0; j <= i; ++j) {
      shares_[j] = score(at, i, j);
      largest = std::max(largest, shares_[j]);
    }
    double total = 0;
    for (std::int64_t j = 0; j <= i; ++j) total += std::exp(shares_[j] - largest);
    const double log_sum = largest + std::log(total);
    log_sums_[at.first_row + i] = log_sum;
    std::fill(query_sums_.begin(), query_sums_.end(), 0.0);
    for (std::int64_t j = 0; j <= i; ++j) {
      add_scaled(std::exp(shares_[j] - log_sum), at.values + j * at.stride, shape_.width,
                 query_sums_.data());
    }
    for (std::int64_t c = 0; c < shape_.width; ++c) y[c] = static_cast<float>(query_sums_[c]);
  }

  void backward_head(const Head& at, const float* y, const float* dy, float* dqkv) {
    std::fill(key_sums_.begin(), key_sums_.end(), 0.0);
    std::fill(value_sums_.begin(), value_sums_.end(), 0.0);
    for (std::int64_t i = 0; i < shape_.length; ++i) {
      backward_query(at, i, y + i * channels_, dy + i * channels_);
      write(query_sums_.data(), dqkv + i * at.stride);
    }
    for (std::int64_t j = 0; j < shape_.length; ++j) {
      write(key_sums_.data() + j * shape_.width, dqkv + channels_ + j * at.stride);
      write(value_sums_.data() + j * shape_.width, dqkv + 2 * channels_ + j * at.stride);
    }
  }

  // Writes dq[i] to query_sums_ and adds to the sums of dk and dv.
  void backward_query(const Head& at, std::int64_t i, const float* y, const float* dy) {
    const std::int64_t width = shape_.width;
    const double mean = dot(dy, y, width);  // sum over j of p[i, j] e[i, j]
    std::fill(query_sums_.begin(), query_sums_.end(), 0.0);
    for (std::int64_t j = 0; j <= i; ++j) {
      const double share = std::exp(score(at, i, j) - log_sums_[at.first_row + i]);
      const double by_share = dot(dy, at.values + j * at.stride, width);
      const double by_product = scale_ * share * (by_share - mean);
      add_scaled(share, dy, width, value_sums_.data() + j * width);
      add_scaled(by_product, at.queries + i * at.stride, width, key_sums_.data() + j * width);
      add_scaled(by_product, at.keys + j * at.stride, width, query_sums_.data());
    }
  }

  void write(const double* from, float* to) const {
    for (std::int64_t c = 0; c < shape_.width; ++c) to[c] = static_cast<float>(from[c]);
  }

  const AttentionShape shape_;
  const std::int64_t channels_;
  const double scale_;
  Floats qkv_, y_, dy_, dqkv_;
  AlignedArray<double> log_sums_;    // of each query of the last forward
  AlignedArray<double> shares_;      // of one query
  AlignedArray<double> query_sums_;  // of one query
  AlignedArray<double> key_sums_;    // of one head
  AlignedArray<double> value_sums_;
};

}  // namespace

std::unique_ptr<AttentionOp> reference_attention(const AttentionShape& shape,
                                                 const PlanOptions& plan) {
  return std::make_unique<ReferenceAttention>(shape, plan);
}

}  // namespace fettle::kernels
