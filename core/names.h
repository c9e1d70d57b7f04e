// Labels that tie a Trial to its Study. Names themselves are in plan.h (trial_name, run_name).
#pragma once

namespace fettle::core {

inline constexpr const char* kStudyLabel = "fettle.dev/study";
// The uid tells a Study from an earlier one of the same name.
inline constexpr const char* kStudyUidLabel = "fettle.dev/study-uid";

}  // namespace fettle::core
