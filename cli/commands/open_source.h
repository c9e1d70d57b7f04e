// Opens the source of Studies that the command line names: this machine or a cluster.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/common/commands.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

// Returns the source that `place` names.
Result<std::unique_ptr<StudySource>> open_source(const Target& place);

// Read the study of that name there, without its events; "" = default_study().
Result<SeenStudy> read_study(StudySource& source, const std::string& study);
Result<SeenStudy> read_study(const Target& place, const std::string& study);

}  // namespace fettle::cli
