// ModelMetrics: the cost of a network in use: size, work and latency. Results of a trial like its
// accuracy, so that a Study can weigh the two.
// One thread, the training's.
#pragma once

#include "trainer/data/batch_writer.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network_plan.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/model_runner.h"

namespace fettle::trainer {

// `parameters`, `model_mib` (in fp32, with running statistics) and `flops_per_sample`: facts of the
// plan, the same on every machine.
Metrics model_metrics(const NetworkPlan& plan);

// `inference_ms`: the median time from one sample in host memory to its answer, on the training's
// device and in its precision. Takes the first of `samples` some times, a fifth of a second or one
// pass. Changes nothing that is learnt.
double measure_inference_ms(ModelRunner& runner, const ImageSet& images, const Indices& samples,
                            const BatchWriter& writer);

}  // namespace fettle::trainer
