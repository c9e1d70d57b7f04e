// A whole training of one or several workers, which are threads, with its reports and final
// weights; and the file of its network for other programs. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/files/export.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"
#include "trainer/training.h"

namespace fettle::trainer {

struct RanTraining {
  Ending ending = Ending::kReached;
  std::string error;        // "": none
  std::int64_t failed = 0;  // workers that could not begin
  std::vector<EpochReport> reports;
  std::vector<std::string> log;             // rank 0's
  std::vector<std::vector<float>> weights;  // masters, by rank
  Checkpoint last;                          // rank 0's

  double metric(const std::string& name) const {
    for (const auto& [key, value] : reports.back().metrics) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no metric " << name;
    return 0;
  }
};

struct RunOptions {
  std::int64_t world_size = 1;
  int stop_after = -1;                                              // steps; -1: never
  std::function<std::unique_ptr<kernels::Backend>()> backend = {};  // default: the configuration's
};

inline RanTraining run_training(const TrainingTask& task, const RunOptions& options = {}) {
  DataCache off("");
  const TrainingData data = *load_training_data(task.config.data, off);
  RanTraining ran;
  ran.weights.resize(static_cast<std::size_t>(options.world_size));
  std::atomic<std::int64_t> failed = 0;
  Threads::run(options.world_size, [&](Collective& collective) {
    const auto rank = static_cast<std::size_t>(collective.rank());
    int left = options.stop_after;
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) { ran.reports.push_back(report); };
    hooks.log = [&, rank](const std::string& line) {
      if (rank == 0) ran.log.push_back(line);
    };
    hooks.should_stop = [&left] {
      if (left < 0) return false;
      --left;
      return left <= 0;
    };
    auto training = options.backend ? Training::create_on(options.backend(), task, data, collective,
                                                          std::move(hooks))
                                    : Training::create(task, data, collective, std::move(hooks));
    if (!training.ok()) {
      ++failed;
      if (rank == 0) ran.error = training.error().message;
      return;
    }
    const auto ending = (*training)->run();
    ASSERT_TRUE(ending.ok()) << ending.error().message;
    if (rank == 0) ran.ending = *ending;
    const auto whole = (*training)->learner().whole_weights();
    ran.weights[rank] = (*training)->learner().network().parameters().weights.download();
    const auto snapshot = (*training)->snapshot();
    ASSERT_TRUE(whole.ok() && snapshot.ok());
    if (rank == 0) ran.last = *snapshot;
  });
  ran.failed = failed;
  return ran;
}

// Writes the network of a checkpoint as `fettle export-model` does.
inline void write_model(const Checkpoint& checkpoint, const std::string& path) {
  const auto model = read_saved_model(checkpoint, "the checkpoint");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto files = export_files(*model, {}, "safetensors", path);
  ASSERT_TRUE(files.ok()) << files.error().message;
  ASSERT_TRUE(write_file(path, files->front().content).ok());
}

}  // namespace fettle::trainer
