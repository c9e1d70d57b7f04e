#include "kernels/backends/reference/backend.h"

#include "kernels/add/loops.h"
#include "kernels/attention/reference.h"
#include "kernels/backends/cpu/backend.h"
#include "kernels/batch_norm/reference.h"
#include "kernels/cast/loops.h"
#include "kernels/conv/reference.h"
#include "kernels/dropout/reference.h"
#include "kernels/embedding/reference.h"
#include "kernels/gelu/reference.h"
#include "kernels/layer_norm/reference.h"
#include "kernels/linear/beside_gelu.h"
#include "kernels/linear/reference.h"
#include "kernels/optimizer/loops.h"
#include "kernels/optimizer/reference.h"
#include "kernels/pool/reference.h"
#include "kernels/relu/reference.h"
#include "kernels/softmax_cross_entropy/reference.h"

namespace fettle::kernels {

Result<std::unique_ptr<LinearOp>> ReferenceBackend::make_linear(const LinearShape& shape,
                                                                const PlanOptions& plan) {
  return beside_gelu(*this, shape, plan, reference_linear(shape, plan));
}

Result<std::unique_ptr<WeightedOp>> ReferenceBackend::make_conv(const ConvShape& shape,
                                                                const PlanOptions& plan) {
  return reference_conv(shape, plan);
}

Result<std::unique_ptr<BatchNormOp>> ReferenceBackend::make_batch_norm(const BatchNormShape& shape,
                                                                       const PlanOptions& plan) {
  return reference_batch_norm(shape, plan);
}

Result<std::unique_ptr<RowNormOp>> ReferenceBackend::make_row_norm(const RowNormShape& shape,
                                                                   const PlanOptions& plan) {
  return reference_row_norm(shape, plan);
}

Result<std::unique_ptr<AttentionOp>> ReferenceBackend::make_attention(const AttentionShape& shape,
                                                                      const PlanOptions& plan) {
  return reference_attention(shape, plan);
}

Result<std::unique_ptr<EmbeddingOp>> ReferenceBackend::make_embedding(const EmbeddingShape& shape,
                                                                      const PlanOptions& plan) {
  return reference_embedding(shape, plan);
}

Result<std::unique_ptr<PoolOp>> ReferenceBackend::make_pool(const PoolShape& shape,
                                                            const PlanOptions& plan) {
  return reference_pool(shape, plan);
}

std::unique_ptr<ReluOp> ReferenceBackend::relu(DataType type) { return reference_relu(type); }

std::unique_ptr<GeluOp> ReferenceBackend::gelu(GeluForm form, std::int64_t max_count,
                                               DataType type) {
  return reference_gelu(form, max_count, type);
}

std::unique_ptr<DropoutOp> ReferenceBackend::dropout(float rate, std::int64_t elements_per_sample,
                                                     DataType type) {
  return reference_dropout(rate, elements_per_sample, type);
}

std::unique_ptr<SoftmaxCrossEntropyOp> ReferenceBackend::softmax_cross_entropy(std::int64_t classes,
                                                                               DataType type) {
  return reference_softmax_cross_entropy(classes, type);
}

std::unique_ptr<UpdateOp> ReferenceBackend::update(UpdateRule rule,
                                                   std::vector<UpdateBuffers> parts,
                                                   const UpdateSettings& settings) {
  return reference_update(rule, std::move(parts), settings);
}

void ReferenceBackend::sum_of_squares(std::int64_t count, const float* values, double* result) {
  *result = sum_squares(count, values);
}

void ReferenceBackend::add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b,
                           Buffer y, bool relu) {
  add_typed(type, count, a, b, y, relu);
}

void ReferenceBackend::round(DataType type, std::int64_t count, const float* from,
                             std::uint16_t* to) {
  round_all(type, count, from, to);
}

void ReferenceBackend::widen(DataType type, std::int64_t count, const std::uint16_t* from,
                             float* to) {
  widen_all(type, count, from, to);
}

std::unique_ptr<Backend> reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace fettle::kernels
