// convert_documents(): every Experiment among some documents as a Study, and the text of a study
// file of them.
//
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/convert/documents.h"

namespace fettle::cli {

struct ConvertedStudy {
  std::string file;  // of its Experiment
  std::string name;
  std::string yaml;                    // the Study, with its notes as comments
  std::vector<api::Diagnostic> notes;  // in the order of the Experiment's fields
};

struct ConvertedStudies {
  std::vector<ConvertedStudy> studies;
  std::vector<api::Diagnostic> errors;  // why some documents are no Study
};

// A ConfigMap among the documents is read where an Experiment names it. `steps`: of a trial.
ConvertedStudies convert_documents(const std::vector<SourceDocument>& documents,
                                   std::optional<std::int64_t> steps);

}  // namespace fettle::cli
