#include "runtime/local/process/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace fettle::local {
namespace {

// Variables by which programs are found and find libraries, data and home, reach the network, use
// the hardware, and choose the language. A Study sets everything else, so that a trial depends on
// the Study and not on the shell it was started from. No secrets: a Study asks for secrets by name.
constexpr std::array kInheritedVariables = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "HF_HOME",
    "CONDA_PREFIX",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "XDG_CACHE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HF_HUB_CACHE",
    "HF_DATASETS_CACHE",
    "TORCH_HOME",
    "KERAS_HOME",
    "XLA_FLAGS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "CUBLAS_WORKSPACE_CONFIG",
    "FETTLE_CUDA_LIBRARY",
    "FETTLE_DATA_CACHE",
    "FETTLE_KERNEL_CACHE",
    "FETTLE_TENSORBOARD",
};
constexpr std::array kInheritedPrefixes = {"LC_",   "CUDA_",     "NVIDIA_", "NCCL_",
                                           "GLOO_", "OMP_",      "GOMP_",   "KMP_",
                                           "MKL_",  "OPENBLAS_", "NUMEXPR_"};

bool is_inherited(std::string_view name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::find(kInheritedVariables.begin(), kInheritedVariables.end(), name) !=
             kInheritedVariables.end() ||
         std::any_of(kInheritedPrefixes.begin(), kInheritedPrefixes.end(), begins);
}

}  // namespace

std::vector<std::string> inherited_environment(const std::vector<std::string>& passed) {
  std::vector<std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (is_inherited(name) || std::find(passed.begin(), passed.end(), name) != passed.end())
      out.emplace_back(text);
  }
  return out;
}

void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value) {
  const std::string begin = name + "=";
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(begin); });
  environment.push_back(begin + value);
}

}  // namespace fettle::local
