// loops.h and lamb.h compiled for each processor.
#include "kernels/fast_operations.h"
#include "kernels/optimizer/loops.h"
#include "kernels/optimizer/update.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

template <class Formula>
FETTLE_FOR_EACH_PROCESSOR void update_part(const UpdateBuffers& part, const Formula& formula) {
  update_all(part, formula);
}

struct FastLoops {
  template <class Formula>
  static void run(const UpdateBuffers& part, const Formula& formula) {
    update_part(part, formula);
  }
};

}  // namespace

std::unique_ptr<UpdateOp> fast_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                      const UpdateSettings& settings) {
  return std::make_unique<CpuUpdate<FastLoops>>(rule, std::move(parts), settings);
}

FETTLE_FOR_EACH_PROCESSOR double fast_sum_of_squares(std::int64_t count, const float* values) {
  return sum_squares(count, values);
}

}  // namespace fettle::kernels
