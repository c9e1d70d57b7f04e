#include "trainer/parallel/worker_ranks.h"

#include "base/machine/gpu_list.h"

namespace fettle::trainer {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
constexpr const char* kRanksHere = "LOCAL_WORLD_SIZE";

Result<std::vector<std::string>> visible_gpus(const char* list, std::int64_t needed) {
  std::vector<std::string> gpus;
  if (list == nullptr) {
    for (std::int64_t i = 0; i < needed; ++i) gpus.push_back(std::to_string(i));
    return gpus;
  }
  gpus = machine::split_gpus(list);
  if (std::ssize(gpus) >= needed) return gpus;
  return invalid("the worker is to have " + std::to_string(needed) + " GPUs, but " + kVisible +
                 " is \"" + list + "\"");
}

}  // namespace

Result<std::vector<Variables>> rank_variables(const Variable& variable, std::int64_t gpus,
                                              const Meeting& alone) {
  const bool has_others = variable("WORLD_SIZE") != nullptr;
  FETTLE_ASSIGN(const std::int64_t workers,
                whole_number(variable, "WORLD_SIZE", 1, kMostRanks / gpus, 1));
  std::int64_t worker = 0;
  if (has_others) {
    // Not limited by WORLD_SIZE: workers that join later have higher numbers.
    FETTLE_ASSIGN(worker, whole_number(variable, "RANK", 0, kMostRanks / gpus - 1));
  }
  FETTLE_ASSIGN(const std::vector<std::string> visible, visible_gpus(variable(kVisible), gpus));
  std::vector<Variables> all;
  for (std::int64_t i = 0; i < gpus; ++i) {
    Variables& rank = all.emplace_back();
    rank = {{"RANK", std::to_string(worker * gpus + i)},
            {"WORLD_SIZE", std::to_string(workers * gpus)},
            {"LOCAL_RANK", std::to_string(i)},
            {kRanksHere, std::to_string(gpus)},
            {kVisible, visible[static_cast<std::size_t>(i)]}};
    if (has_others) continue;
    rank.emplace_back("MASTER_ADDR", alone.at.host);
    rank.emplace_back("MASTER_PORT", std::to_string(alone.at.port));
    rank.emplace_back("FETTLE_RENDEZVOUS_TOKEN", alone.token);
  }
  return all;
}

bool is_rank_of_worker(const Variable& variable) { return variable(kRanksHere) != nullptr; }

}  // namespace fettle::trainer
