// Deterministic names: a replayed or doubled write collides instead of doubling work.
#include "core/names.h"

namespace fettle::core {

std::string trial_name(const std::string& study, std::int64_t index) {
  return study + "-" + std::to_string(index);
}

std::string run_name(const std::string& trial, std::int64_t run) {
  return trial + "-r" + std::to_string(run);
}

}  // namespace fettle::core
