// Export: a trained network as files that other programs read.
//
// Pure functions; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/files/saved_model.h"

namespace fettle::trainer {

// The source of a network; "" = not known.
struct ExportOrigin {
  std::string version;  // of Fettle
  std::string study;
  std::string trial;
};

struct ExportedFile {
  std::string path;
  std::string content;
};

// The values of --format.
std::vector<std::string> export_formats();

// The files of the network in that format, the first at `path`. Errors: a layer that the format
// cannot express; a file that would be too large for it.
Result<std::vector<ExportedFile>> export_files(const SavedModel& model, const ExportOrigin& origin,
                                               const std::string& format, const std::string& path);

// The network in words: its origin, the form of its samples with their normalisation, its layers
// and training, and its scores. Without file names of the machine that it was trained on.
Json describe_model(const SavedModel& model, const ExportOrigin& origin);

}  // namespace fettle::trainer
