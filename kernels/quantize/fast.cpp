// loops.h compiled for each processor.
#include "kernels/fast_operations.h"
#include "kernels/quantize/loops.h"
#include "kernels/targets.h"

namespace fettle::kernels {

FETTLE_FOR_EACH_PROCESSOR void fast_fake_quantize(DataType type, std::int64_t count,
                                                  const float* range, ConstBuffer x, Buffer y) {
  run_typed<FakeQuantize>(type, count, range, x, y);
}

FETTLE_FOR_EACH_PROCESSOR void fast_fake_quantize_backward(DataType type, std::int64_t count,
                                                           const float* range, ConstBuffer x,
                                                           ConstBuffer dy, Buffer dx) {
  run_typed<FakeQuantizeGradient>(type, count, range, x, dy, dx);
}

FETTLE_FOR_EACH_PROCESSOR void fast_track_range(DataType type, std::int64_t count, ConstBuffer x,
                                                float share, float* range) {
  run_typed<TrackRange>(type, count, x, share, range);
}

FETTLE_FOR_EACH_PROCESSOR void fast_fake_quantize_weights(DataType type, const WeightRows& rows,
                                                          ConstBuffer x, Buffer y) {
  run_typed<FakeQuantizeWeights>(type, rows, x, y);
}

}  // namespace fettle::kernels
