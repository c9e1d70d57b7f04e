// The value of CUDA_VISIBLE_DEVICES, which names the GPUs of a process. Pure.
#pragma once

#include <string>
#include <vector>

namespace fettle::machine {

// "0,2".
std::string join_gpus(const std::vector<std::string>& gpus);
// The inverse; like CUDA, it ends the list at the first "-1" or empty name.
std::vector<std::string> split_gpus(const std::string& list);

}  // namespace fettle::machine
