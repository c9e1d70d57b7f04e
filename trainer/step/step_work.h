// StepWork: the cost of one optimiser step for a worker, whatever machine it runs on: operations,
// bytes that memory has to move, bytes of samples, and bytes that the workers exchange.
//
// Each is the minimum that the method needs, from the layers' formulas: a kernel that reads
// something twice needs more. So work divided by a machine's peak is a bound, never a forecast.
// Pure; usable from any thread.
#pragma once

#include "trainer/step/memory_plan.h"

namespace fettle::trainer {

struct StepWork {
  double flops = 0;
  double memory_bytes = 0;   // read and written by the operations and the update
  double sample_bytes = 0;   // of the batches, in the network's input format
  double message_bytes = 0;  // sent (and received) by each worker: 2 (W - 1) / W in a ring
};

StepWork plan_work(const api::TrainerConfig& config, const NetworkPlan& plan,
                   const StepShape& step);

}  // namespace fettle::trainer
