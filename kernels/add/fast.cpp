// loops.h compiled for each processor.
#include "kernels/add/loops.h"
#include "kernels/fast_operations.h"
#include "kernels/targets.h"

namespace fettle::kernels {

FETTLE_FOR_EACH_PROCESSOR void fast_add(DataType type, std::int64_t count, ConstBuffer a,
                                        ConstBuffer b, Buffer y, bool relu) {
  add_typed(type, count, a, b, y, relu);
}

}  // namespace fettle::kernels
