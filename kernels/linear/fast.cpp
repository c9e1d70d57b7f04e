// Linear layer on the packed matrix product (product.h): formulas as reference.cpp.
//
//   forward     Y  = X  W'     A = rows of X,     B = columns of W'
//   backward    dX = G  W      A = rows of G,     B = columns of W
//               dW += G' X     A = columns of G,  B = columns of X
//
// Weights are packed when they change, their columns only after the first backward pass. The other
// operands are packed for every product; that costs 1/samples to 1/outputs of the arithmetic.
// Creation allocates all storage but that of the weights' columns.
#include <algorithm>

#include "kernels/aligned.h"
#include "kernels/bfloat16.h"
#include "kernels/fast_operations.h"
#include "kernels/linear/packed.h"
#include "kernels/linear/product.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

// Adds the sum over r of values[r, c] to sums[c], in fp32 and in order of r.
template <class Element>
FETTLE_FOR_EACH_PROCESSOR void add_rows(std::int64_t rows, std::int64_t channels,
                                        const Element* __restrict values, float* __restrict sums) {
  for (std::int64_t row = 0; row < rows; ++row, values += channels) {
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += widen(values[c]);
  }
}

class FastLinear : public WeightedOp {
 public:
  FastLinear(const LinearShape& shape, const PlanOptions& plan)
      : shape_(shape),
        type_(plan.type),
        bias_(shape.outputs),
        x_rows_(plan.type, tile_rows_for(plan.max_samples), plan.max_samples, shape.inputs),
        x_columns_(plan.type, kTileColumns, shape.inputs, plan.max_samples),
        dy_rows_(plan.type, tile_rows_for(plan.max_samples), plan.max_samples, shape.outputs),
        dy_columns_(plan.type, tile_rows_for(shape.outputs), shape.outputs, plan.max_samples),
        weights_rows_(plan.type, kTileColumns, shape.outputs, shape.inputs),
        weights_columns_(plan.type, kTileColumns, 0, 0) {}

  void set_weights(const LayerWeights& from) override {
    if (shape_.bias) std::copy_n(from.bias, shape_.outputs, bias_.data());
    weights_rows_.pack_rows(from.weights, shape_.outputs, shape_.inputs);
    if (wants_columns_) weights_columns_.pack_columns(from.weights, shape_.inputs, shape_.outputs);
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    x_rows_.pack_rows(x, samples, shape_.inputs);
    multiply_packed(type_, x_rows_, weights_rows_,
                    {store_of_type(), y, shape_.bias ? bias_.data() : nullptr, shape_.relu});
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    if (shape_.relu) fast_relu_backward(type_, samples * shape_.outputs, y, dy, dy);
    if (weight_gradient != nullptr) add_weight_gradient(samples, x, dy, weight_gradient);
    if (shape_.bias) add_bias_gradient(samples, dy, bias_gradient);
    if (dx == nullptr) return;
    if (!wants_columns_) start_packing_columns();
    dy_rows_.pack_rows(dy, samples, shape_.outputs);
    multiply_packed(type_, dy_rows_, weights_columns_, {.store = store_of_type(), .c = dx});
  }

 private:
  void add_weight_gradient(std::int64_t samples, ConstBuffer x, ConstBuffer dy,
                           float* weight_gradient) {
    dy_columns_.pack_columns(dy, shape_.outputs, samples);
    x_columns_.pack_columns(x, shape_.inputs, samples);
    multiply_packed(type_, dy_columns_, x_columns_,
                    {.store = Store::kAddFloat32, .c = weight_gradient});
  }

  Store store_of_type() const {
    return type_ == DataType::kFloat32 ? Store::kWriteFloat32 : Store::kWriteBFloat16;
  }

  void add_bias_gradient(std::int64_t samples, ConstBuffer dy, float* sums) const {
    if (type_ == DataType::kFloat32) {
      add_rows(samples, shape_.outputs, static_cast<const float*>(dy), sums);
    } else {
      add_rows(samples, shape_.outputs, static_cast<const std::uint16_t*>(dy), sums);
    }
  }

  // Called when dx is first wanted, which it never is for a network's first layer.
  void start_packing_columns() {
    AlignedArray<std::byte> weights(shape_.inputs * shape_.outputs * size_of(type_));
    weights_rows_.unpack_rows(weights.data(), shape_.inputs);
    weights_columns_ = PackedMatrix(type_, kTileColumns, shape_.inputs, shape_.outputs);
    weights_columns_.pack_columns(weights.data(), shape_.inputs, shape_.outputs);
    wants_columns_ = true;
  }

  const LinearShape shape_;
  const DataType type_;
  AlignedArray<float> bias_;
  PackedMatrix x_rows_, x_columns_, dy_rows_, dy_columns_, weights_rows_, weights_columns_;
  bool wants_columns_ = false;  // whether weights_columns_ is kept up to date
};

}  // namespace

std::unique_ptr<WeightedOp> fast_linear(const LinearShape& shape, const PlanOptions& plan) {
  return std::make_unique<FastLinear>(shape, plan);
}

}  // namespace fettle::kernels
