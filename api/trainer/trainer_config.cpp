#include "api/trainer/trainer_config.h"

namespace fettle::api {

TrainerConfig::TrainerConfig() = default;
TrainerConfig::TrainerConfig(const TrainerConfig& other) = default;
TrainerConfig::TrainerConfig(TrainerConfig&& other) noexcept = default;
TrainerConfig& TrainerConfig::operator=(const TrainerConfig& other) = default;
TrainerConfig& TrainerConfig::operator=(TrainerConfig&& other) noexcept = default;
TrainerConfig::~TrainerConfig() = default;

}  // namespace fettle::api
