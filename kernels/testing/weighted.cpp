#include "kernels/testing/weighted.h"

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

std::int64_t count_of(const Floats& values) { return static_cast<std::int64_t>(values.size()); }

Floats part(const Floats& values, std::int64_t first, std::int64_t count) {
  return {values.begin() + first, values.begin() + first + count};
}

// Rows [first, first + samples) of the input; weights are shared.
WeightedInput rows(const WeightedInput& input, std::int64_t first, std::int64_t samples) {
  const std::int64_t in = count_of(input.x) / input.samples;
  const std::int64_t out = count_of(input.dy) / input.samples;
  return {samples, part(input.x, first * in, samples * in), input.weights, input.bias,
          part(input.dy, first * out, samples * out)};
}

// Adds to dw and db.
void accumulate(WeightedOp& op, DataType type, const WeightedInput& input, Floats& dw, Floats& db) {
  Array x(type, input.x), y(type, count_of(input.dy)), dy(type, input.dy);
  op.forward(input.samples, x.data(), y.data());
  op.backward(input.samples, x.data(), y.data(), dy.data(), nullptr, dw.data(), db.data());
}

}  // namespace

WeightedInput random_input(std::int64_t samples, std::int64_t input_size, std::int64_t output_size,
                           std::int64_t patch, std::int64_t outputs) {
  return {samples, random_floats(samples * input_size, 1), random_floats(outputs * patch, 2),
          random_floats(outputs, 3), random_floats(samples * output_size, 4)};
}

WeightedOutput run(WeightedOp& op, DataType type, const WeightedInput& input) {
  Array x(type, input.x), weights(type, input.weights), dy(type, input.dy);
  const Array bias(type, input.bias);
  Array y(type, count_of(input.dy)), dx(type, count_of(input.x));
  WeightedOutput result;
  result.dw.assign(input.weights.size(), 0);
  result.db.assign(input.bias.size(), 0);
  op.set_weights({weights.data(), input.bias.data(), bias.data()});
  op.forward(input.samples, x.data(), y.data());
  op.backward(input.samples, x.data(), y.data(), dy.data(), dx.data(), result.dw.data(),
              result.db.data());
  result.y = y.floats();
  result.dx = dx.floats();
  return result;
}

void expect_close(const WeightedOutput& found, const WeightedOutput& expected, double tolerance,
                  const std::string& what) {
  expect_close(found.y, expected.y, tolerance, what + ": y");
  expect_close(found.dx, expected.dx, tolerance, what + ": dx");
  expect_close(found.dw, expected.dw, tolerance, what + ": dw");
  expect_close(found.db, expected.db, tolerance, what + ": db");
}

void expect_accumulates(WeightedOp& op, DataType type, const WeightedInput& input, double tolerance,
                        const std::string& what) {
  const Array weights(type, input.weights), bias(type, input.bias);
  op.set_weights({weights.data(), input.bias.data(), bias.data()});
  Floats whole_w(input.weights.size()), whole_b(input.bias.size());
  Floats parts_w(input.weights.size()), parts_b(input.bias.size());
  const std::int64_t half = input.samples / 2;
  accumulate(op, type, input, whole_w, whole_b);
  accumulate(op, type, rows(input, 0, half), parts_w, parts_b);
  accumulate(op, type, rows(input, half, input.samples - half), parts_w, parts_b);
  expect_close(parts_w, whole_w, tolerance, what + ": dw in two halves");
  expect_close(parts_b, whole_b, tolerance, what + ": db in two halves");
}

void expect_same_bits(WeightedOp& op, DataType type, const WeightedInput& input) {
  const WeightedOutput first = run(op, type, input);
  const WeightedOutput second = run(op, type, input);
  EXPECT_EQ(first.y, second.y);
  EXPECT_EQ(first.dx, second.dx);
  EXPECT_EQ(first.dw, second.dw);
  EXPECT_EQ(first.db, second.db);
}

void expect_weighted_gradients(WeightedOp& op, const WeightedInput& input,
                               const std::string& what) {
  const WeightedOutput result = run(op, DataType::kFloat32, input);
  WeightedInput moved = input;
  Array y(DataType::kFloat32, count_of(input.dy));
  const auto f = [&] {
    const Array weights(DataType::kFloat32, moved.weights), x(DataType::kFloat32, moved.x);
    op.set_weights({weights.data(), moved.bias.data(), moved.bias.data()});
    op.forward(input.samples, x.data(), y.data());
    return dot(y.floats(), input.dy);
  };
  constexpr float kStep = 1.0F / 256;
  constexpr double kTolerance = 2e-3;  // fp32 rounding of y over the step
  expect_gradient(f, moved.x.data(), result.dx, kStep, kTolerance, what + ": dx");
  expect_gradient(f, moved.weights.data(), result.dw, kStep, kTolerance, what + ": dw");
  expect_gradient(f, moved.bias.data(), result.db, kStep, kTolerance, what + ": db");
}

}  // namespace fettle::kernels::testing
