// Exec plugins: programs that print credentials (client.authentication.k8s.io/v1), as cloud
// providers have them. Runs a program that a file names: only for people at a terminal, who run
// kubectl with the same file. Thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "kube/transport/cluster_config.h"
#include "kube/transport/credentials.h"

namespace fettle::kube {

// Runs the plugin of `config` when a credential is needed, and again when it has expired or was
// refused. Somebody may have to log in: it may take kMaxExec.
inline constexpr std::chrono::minutes kMaxExec{5};
std::unique_ptr<TokenSource> exec_credentials(const ClusterConfig& config);

// What a plugin is told in KUBERNETES_EXEC_INFO. Pure, but for a CA that is in a file.
Result<std::string> exec_info(const ClusterConfig& config, bool interactive);

// What a plugin printed. `now_ms` is Unix time. Pure.
Result<CachedToken::Fetched> read_exec_credential(std::string_view output,
                                                  std::string_view api_version,
                                                  std::int64_t now_ms);

}  // namespace fettle::kube
