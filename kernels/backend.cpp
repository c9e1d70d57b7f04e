#include "kernels/backend.h"

#include "kernels/shapes.h"

namespace fettle::kernels {

Result<std::unique_ptr<LinearOp>> Backend::linear(const LinearShape& shape,
                                                  const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_linear(shape, plan);
}

Result<std::unique_ptr<WeightedOp>> Backend::conv(const ConvShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_conv(shape, plan);
}

Result<std::unique_ptr<BatchNormOp>> Backend::batch_norm(const BatchNormShape& shape,
                                                         const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_batch_norm(shape, plan);
}

Result<std::unique_ptr<RowNormOp>> Backend::row_norm(const RowNormShape& shape,
                                                     const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_row_norm(shape, plan);
}

Result<std::unique_ptr<AttentionOp>> Backend::attention(const AttentionShape& shape,
                                                        const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_attention(shape, plan);
}

Result<std::unique_ptr<EmbeddingOp>> Backend::embedding(const EmbeddingShape& shape,
                                                        const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_embedding(shape, plan);
}

Result<std::unique_ptr<PoolOp>> Backend::pool(const PoolShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_shape(shape, plan));
  return make_pool(shape, plan);
}

Result<std::unique_ptr<GatherOp>> Backend::gather(const Samples& samples, const ImageLook& look,
                                                  const PlanOptions& plan) {
  FETTLE_TRY(check_shape(samples, plan));
  return make_gather(samples, look, plan);
}

}  // namespace fettle::kernels
