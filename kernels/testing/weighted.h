// Drives linear and convolution layers in tests.
#pragma once

#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {

struct WeightedInput {
  std::int64_t samples = 1;
  Floats x, weights, bias, dy;
};

struct WeightedOutput {
  Floats y, dx, dw, db;
};

// Random contents. `patch`: inputs of one output; `outputs`: rows of the weights.
WeightedInput random_input(std::int64_t samples, std::int64_t input_size, std::int64_t output_size,
                           std::int64_t patch, std::int64_t outputs);

// Calls set_weights, forward and backward in a new set of buffers.
WeightedOutput run(WeightedOp& op, DataType type, const WeightedInput& input);

void expect_close(const WeightedOutput& found, const WeightedOutput& expected, double tolerance,
                  const std::string& what);

// Compares gradients of two halves, summed in the same buffers, with the gradients of the whole;
// the reference gives the same bits.
void expect_accumulates(WeightedOp& op, DataType type, const WeightedInput& input, double tolerance,
                        const std::string& what);

// Expects two runs on the same numbers to agree in every bit.
void expect_same_bits(WeightedOp& op, DataType type, const WeightedInput& input);

// Compares dx, dw and db with finite differences of sum(y * dy). `op` computes in fp32.
void expect_weighted_gradients(WeightedOp& op, const WeightedInput& input, const std::string& what);

}  // namespace fettle::kernels::testing
