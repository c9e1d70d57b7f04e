// Reads a Study here or on a cluster, wherever the command line says.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/common/commands.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

// The source that `place` names.
Result<std::unique_ptr<StudySource>> open_source(const Target& place);

// The study of that name there, without its events; "" = default_study().
Result<SeenStudy> read_study(const Target& place, const std::string& study);

}  // namespace fettle::cli
