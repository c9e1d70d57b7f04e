#include "trainer/program/newest_model.h"

#include <utility>

#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/program/console.h"

namespace fettle::trainer {

Result<NewestModel> read_newest_model(const Arguments& arguments, const std::string& option) {
  NewestModel newest;
  std::string directory = arguments.overrides.checkpoints;
  if (!arguments.file.empty()) {
    FETTLE_ASSIGN(newest.task, read_process_task(arguments.file, arguments.overrides));
    if (directory.empty()) directory = newest.task->task.checkpoints;
  }
  if (directory.empty()) {
    return invalid(option + " needs a checkpoint: name a trial file, or --checkpoints DIR");
  }
  FETTLE_ASSIGN(CheckpointStore::Found found, CheckpointStore(directory).newest());
  for (const std::string& reason : found.skipped) log_line("skipped a checkpoint: " + reason);
  if (!found.checkpoint) return not_found("there is no checkpoint in " + directory);
  newest.data = read_fingerprint(found.checkpoint->data);
  newest.path = std::move(found.path);
  FETTLE_ASSIGN(newest.model, read_saved_model(std::move(*found.checkpoint), newest.path));
  return newest;
}

}  // namespace fettle::trainer
