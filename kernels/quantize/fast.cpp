// loops.h compiled for each processor.
#include "kernels/fast_operations.h"
#include "kernels/quantize/loops.h"
#include "kernels/targets.h"

namespace fettle::kernels {

FETTLE_FOR_EACH_PROCESSOR void fast_fake_quantize(std::int64_t count, const float* range,
                                                  const float* x, float* y) {
  fake_quantize_all(count, range, x, y);
}

}  // namespace fettle::kernels
