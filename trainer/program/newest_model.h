// The network of a trial's newest checkpoint, as the command line names it: by a trial file, or by
// a directory of checkpoints.
// One thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/data/fingerprint.h"
#include "trainer/files/saved_model.h"
#include "trainer/program/arguments.h"
#include "trainer/program/process_task.h"

namespace fettle::trainer {

struct NewestModel {
  SavedModel model;
  DataFingerprint data;             // that it was trained on
  std::string path;                 // the checkpoint's
  std::optional<ProcessTask> task;  // of the file, if one is named
};

// `option` asks for it, and is named in messages. Errors: neither a file nor a directory is named;
// no checkpoint; only damaged checkpoints; as read_saved_model().
Result<NewestModel> read_newest_model(const Arguments& arguments, const std::string& option);

}  // namespace fettle::trainer
