// loops.h compiled for each processor.
#include "kernels/cast/loops.h"
#include "kernels/fast_operations.h"
#include "kernels/targets.h"

namespace fettle::kernels {

FETTLE_FOR_EACH_PROCESSOR void fast_round(DataType type, std::int64_t count, const float* from,
                                          std::uint16_t* to) {
  round_all(type, count, from, to);
}

FETTLE_FOR_EACH_PROCESSOR void fast_widen(DataType type, std::int64_t count,
                                          const std::uint16_t* from, float* to) {
  widen_all(type, count, from, to);
}

}  // namespace fettle::kernels
