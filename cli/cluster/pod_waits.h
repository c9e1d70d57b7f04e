// Why a pod's container has not started yet.
#pragma once

#include <string>

#include "kube/objects/objects.h"

namespace fettle::cli {

// Returns the reason; "" once the container has started, or the pod has ended.
std::string waiting_reason(const kube::Pod& pod, const std::string& container);

}  // namespace fettle::cli
