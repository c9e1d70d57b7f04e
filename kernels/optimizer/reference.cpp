// loops.h and lamb.h for any processor.
#include "kernels/optimizer/loops.h"
#include "kernels/optimizer/update.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

struct ReferenceLoops {
  template <class Formula>
  static void run(const UpdateBuffers& part, const Formula& formula) {
    update_all(part, formula);
  }
};

}  // namespace

std::unique_ptr<UpdateOp> reference_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                           const UpdateSettings& settings) {
  return std::make_unique<CpuUpdate<ReferenceLoops>>(rule, std::move(parts), settings);
}

}  // namespace fettle::kernels
