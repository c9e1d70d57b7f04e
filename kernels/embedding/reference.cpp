// Embedding of tokens with learned positions, CPU reference and, being bound by memory, the fast
// backend's too.
//
//   forward    y[s, t] = table[tokens[s, t]] + positions[t]
//   backward   dtable[tokens[s, t]] += dy[s, t],  dpositions[t] += dy[s, t]
//
// Sums in fp32, in order of samples, then tokens.
#include "base/check.h"
#include "kernels/reference/floats.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

void add_to(const float* from, std::int64_t count, float* to) {
  for (std::int64_t c = 0; c < count; ++c) to[c] += from[c];
}

class ReferenceEmbedding : public EmbeddingOp {
 public:
  ReferenceEmbedding(const EmbeddingShape& shape, const PlanOptions& plan)
      : shape_(shape),
        table_(plan.type, shape.vocabulary * shape.channels),
        positions_(plan.type, shape.length * shape.channels),
        y_(plan.type, plan.max_samples * shape.length * shape.channels),
        dy_(plan.type, plan.max_samples * shape.length * shape.channels) {}

  void forward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer table,
               ConstBuffer positions, Buffer y) override {
    const std::int64_t channels = shape_.channels;
    const float* rows = table_.read(table, shape_.vocabulary * channels);
    const float* places = positions_.read(positions, shape_.length * channels);
    float* output = y_.target(y);
    for_each_token(samples, tokens, [&](std::int64_t i, std::int64_t token, std::int64_t t) {
      const float* row = rows + token * channels;
      const float* place = places + t * channels;
      for (std::int64_t c = 0; c < channels; ++c) output[i * channels + c] = row[c] + place[c];
    });
    y_.write(y, samples * shape_.length * channels);
  }

  void backward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer dy,
                float* table_gradient, float* positions_gradient) override {
    const std::int64_t channels = shape_.channels;
    const float* gradient = dy_.read(dy, samples * shape_.length * channels);
    for_each_token(samples, tokens, [&](std::int64_t i, std::int64_t token, std::int64_t t) {
      add_to(gradient + i * channels, channels, table_gradient + token * channels);
      add_to(gradient + i * channels, channels, positions_gradient + t * channels);
    });
  }

 private:
  // Calls function(index among all tokens, its id, its place in the sample).
  template <class Function>
  void for_each_token(std::int64_t samples, const std::int32_t* tokens, Function function) const {
    for (std::int64_t i = 0; i < samples * shape_.length; ++i) {
      CHECK(tokens[i] >= 0 && tokens[i] < shape_.vocabulary, "a token is in the vocabulary");
      function(i, tokens[i], i % shape_.length);
    }
  }

  const EmbeddingShape shape_;
  Floats table_, positions_, y_, dy_;
};

}  // namespace

std::unique_ptr<EmbeddingOp> reference_embedding(const EmbeddingShape& shape,
                                                 const PlanOptions& plan) {
  return std::make_unique<ReferenceEmbedding>(shape, plan);
}

}  // namespace fettle::kernels
