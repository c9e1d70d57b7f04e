// Which of this machine's NVIDIA GPUs a local trial gets: whole ones, each for one trial at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fettle::local {

// The names by which CUDA_VISIBLE_DEVICES knows the GPUs of this machine: those it lists if it is
// set in this process, otherwise "0", "1" ... for each /dev/nvidia<n>.
std::vector<std::string> visible_gpus();

// The first `count` of `visible` that are not in `taken`; nothing where there are fewer. Pure.
std::optional<std::vector<std::string>> choose_gpus(const std::vector<std::string>& visible,
                                                    const std::vector<std::string>& taken,
                                                    std::size_t count);

}  // namespace fettle::local
