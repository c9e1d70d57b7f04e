// Parameters for tests that run once with each order of streams.
#pragma once

#include <string>

#include "kernels/emulator/emulator.h"

namespace fettle::kernels::emulator {

inline constexpr Streams kEveryStreams[] = {Streams::kAtOnce, Streams::kLate,
                                            Streams::kOthersFirst};

inline std::string name_of(Streams streams) {
  if (streams == Streams::kAtOnce) return "AtOnce";
  return streams == Streams::kLate ? "Late" : "OthersFirst";
}

}  // namespace fettle::kernels::emulator
