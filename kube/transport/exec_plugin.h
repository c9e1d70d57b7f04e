// Exec plugins: programs that print credentials (client.authentication.k8s.io/v1), as shipped by
// cloud providers. A file names the program to run, so they are only for people at a terminal,
// whose kubectl does the same. Thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "kube/transport/cluster_config.h"
#include "kube/transport/credentials.h"

namespace fettle::kube {

// Runs the plugin of `config` when a credential is needed, has expired or was refused. The user may
// have to log in, so it may take kMaxExec. A plugin that takes longer than `limit` is killed.
inline constexpr std::chrono::minutes kMaxExec{5};
std::unique_ptr<TokenSource> exec_credentials(const ClusterConfig& config,
                                              std::chrono::milliseconds limit = kMaxExec);

// Returns the value of KUBERNETES_EXEC_INFO. Pure, except for reading a CA file.
Result<std::string> exec_info(const ClusterConfig& config, bool interactive);

// Parses a plugin's output. `now_ms` is Unix time. Pure.
Result<CachedToken::Fetched> read_exec_credential(std::string_view output,
                                                  std::string_view api_version,
                                                  std::int64_t now_ms);

}  // namespace fettle::kube
