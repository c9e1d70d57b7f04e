#include "kernels/optimizer/fast.h"

#include "kernels/optimizer/loops.h"
#include "kernels/optimizer/update.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

FETTLE_FOR_EACH_PROCESSOR void update_sgd(const UpdateBuffers& part, const SgdFormula& formula) {
  update_all(part, formula);
}
FETTLE_FOR_EACH_PROCESSOR void update_adam(const UpdateBuffers& part, const AdamFormula& formula) {
  update_all(part, formula);
}
FETTLE_FOR_EACH_PROCESSOR void update_rmsprop(const UpdateBuffers& part,
                                              const RmspropFormula& formula) {
  update_all(part, formula);
}
FETTLE_FOR_EACH_PROCESSOR void update_one_lamb(const UpdateBuffers& one_tensor,
                                               const LambFormula& formula) {
  update_lamb(one_tensor, formula);
}
FETTLE_FOR_EACH_PROCESSOR double sum_of_squares(std::int64_t count, const float* values) {
  return sum_squares(count, values);
}

struct FastLoops {
  static void run(const UpdateBuffers& part, const SgdFormula& formula) {
    update_sgd(part, formula);
  }
  static void run(const UpdateBuffers& part, const AdamFormula& formula) {
    update_adam(part, formula);
  }
  static void run(const UpdateBuffers& part, const RmspropFormula& formula) {
    update_rmsprop(part, formula);
  }
  static void run(const UpdateBuffers& one_tensor, const LambFormula& formula) {
    update_one_lamb(one_tensor, formula);
  }
};

}  // namespace

std::unique_ptr<UpdateOp> fast_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                      const UpdateSettings& settings) {
  return std::make_unique<CpuUpdate<FastLoops>>(rule, std::move(parts), settings);
}
double fast_sum_of_squares(std::int64_t count, const float* values) {
  return sum_of_squares(count, values);
}

}  // namespace fettle::kernels
