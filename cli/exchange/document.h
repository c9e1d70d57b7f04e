// The document of `fettle export`: one study with everything that exporters, pages and programs
// need, in a form that is promised (docs/export.md).
//
// Members are only added within a version; kExportVersion changes when one is removed or gets
// another meaning. Pure.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "cli/views/view.h"

namespace fettle::cli {

inline constexpr std::int64_t kExportVersion = 1;

// `view.timeline` becomes the events.
Json export_document(const RunView& view);

}  // namespace fettle::cli
