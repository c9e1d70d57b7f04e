#include "search/testing/gaussian_process.h"

#include "search/testing/problems.h"

namespace fettle::search::gp::testing {

Space mixed_space() {
  using namespace search::testing;  // NOLINT: the helpers of the folder above
  return Space::make({real("x", 0, 1), real("lr", 1e-5, 1, api::Scale::kLog), integer("n", 1, 9),
                      choice("c", {"a", "b", "c"}), only_if(real("y", -1, 1), "c", {"a"}),
                      only_if(choice("d", {"p", "q", "r"}), "c", {"a", "b"}),
                      only_if(real("z", 0, 1), "d", {"q"})})
      .value();
}

Inputs draw_inputs(const Space& space, Random& random, Index count) {
  Inputs out(count, static_cast<Index>(space.dimensions()));
  for (Index i = 0; i < count; ++i) out.set(i, space, space.draw(random));
  return out;
}

Hyperparameters draw_hyperparameters(const Axes& axes, Random& random) {
  Hyperparameters out;
  out.log_lengths.resize(static_cast<Index>(axes.list.size()));
  for (double& length : out.log_lengths) length = random.normal() - 0.5;
  out.log_noise = -4 + random.normal();
  out.ties.resize(axes.branches);
  for (double& tie : out.ties) tie = random.normal();
  out.warps.resize(2 * static_cast<Index>(axes.numbers.size()));
  for (double& warp : out.warps) warp = 0.4 * random.normal();
  return out;
}

}  // namespace fettle::search::gp::testing
