#include "kernels/optimizer/fast.h"

#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/loops.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

FETTLE_FOR_EACH_PROCESSOR void update_sgd(const UpdateBuffers& buffers, const SgdFormula& formula) {
  update_all(buffers, formula);
}
FETTLE_FOR_EACH_PROCESSOR void update_adam(const UpdateBuffers& buffers,
                                           const AdamFormula& formula) {
  update_all(buffers, formula);
}
FETTLE_FOR_EACH_PROCESSOR void update_rmsprop(const UpdateBuffers& buffers,
                                              const RmspropFormula& formula) {
  update_all(buffers, formula);
}
FETTLE_FOR_EACH_PROCESSOR void update_one_lamb(const UpdateBuffers& one_tensor,
                                               const LambFormula& formula) {
  update_lamb(one_tensor, formula);
}
FETTLE_FOR_EACH_PROCESSOR double sum_of_squares(std::int64_t count, const float* values) {
  return sum_squares(count, values);
}

}  // namespace

void fast_sgd(const UpdateBuffers& buffers, const UpdateSettings& settings) {
  update_sgd(buffers, SgdFormula(settings));
}
void fast_adam(const UpdateBuffers& buffers, const UpdateSettings& settings, bool decoupled) {
  update_adam(buffers, AdamFormula(settings, decoupled));
}
void fast_rmsprop(const UpdateBuffers& buffers, const UpdateSettings& settings) {
  update_rmsprop(buffers, RmspropFormula(settings));
}
void fast_lamb(const UpdateBuffers& one_tensor, const UpdateSettings& settings) {
  update_one_lamb(one_tensor, LambFormula(settings));
}
double fast_sum_of_squares(std::int64_t count, const float* values) {
  return sum_of_squares(count, values);
}

}  // namespace fettle::kernels
