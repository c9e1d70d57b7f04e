// Tells from a container's last words whether it ended because its GPU's memory was too small.
//
// The built-in trainer names its need before it begins. Other programs die in the middle, in the
// words of their framework; and a library between them and the card (HAMi's) turns the driver's
// error into one that the CUDA runtime does not know. Pure; usable from any thread.
#pragma once

#include <optional>
#include <string_view>

namespace fettle::kubernetes {

// The bytes that it needs at least, 0 if it does not say; absent if it ended otherwise.
std::optional<double> gpu_memory_short(std::string_view last_words);

}  // namespace fettle::kubernetes
