// UpdateOp on a CPU: calls the rule's function for each part. The CPU backends differ only in these
// functions.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kernels/optimizer/formulas.h"
#include "kernels/optimizer/lamb.h"

namespace fettle::kernels {

// `Loops` has a static function for each of the formulas: run(const UpdateBuffers&, formula).
template <class Loops>
class CpuUpdate final : public UpdateOp {
 public:
  CpuUpdate(UpdateRule rule, std::vector<UpdateBuffers> parts, const UpdateSettings& settings)
      : rule_(rule), parts_(std::move(parts)), settings_(settings) {}

  void run(const StepControl* control) override {
    if (control->apply == 0) return;  // overflow, divergence or lost sums (step.h)
    for (const UpdateBuffers& part : parts_) update(part, *control);
  }

 private:
  void update(const UpdateBuffers& part, const StepControl& step) const {
    switch (rule_) {
      case UpdateRule::kSgd:
        return Loops::run(part, SgdFormula(settings_, part, step));
      case UpdateRule::kAdam:
        return Loops::run(part, AdamFormula(settings_, part, step, /*decoupled=*/false));
      case UpdateRule::kAdamW:
        return Loops::run(part, AdamFormula(settings_, part, step, /*decoupled=*/true));
      case UpdateRule::kRmsProp:
        return Loops::run(part, RmspropFormula(settings_, part, step));
      case UpdateRule::kLamb:
        return Loops::run(part, LambFormula(settings_, part, step));
    }
  }

  const UpdateRule rule_;
  const std::vector<UpdateBuffers> parts_;
  const UpdateSettings settings_;
};

}  // namespace fettle::kernels
