// A tool linked with the program, instead of being loaded into it, receives the ranges. NVTX needs
// no GPU, so the test uses the real NVTX.
#include "kernels/cuda/runtime/nvtx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

namespace {

std::vector<std::string>& heard() {
  static std::vector<std::string> all;
  return all;
}

nvtxDomainHandle_t create(const char* name) {
  heard().push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&heard());  // any non-null pointer
}
int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  heard().push_back(std::string("+") + attributes->message.ascii);
  return 0;
}
int pop(nvtxDomainHandle_t) {
  heard().emplace_back("-");
  return 0;
}

// Replaces NVTX's functions, as Nsight does when it is loaded.
int listen(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}

}  // namespace

// NVTX finds its tool by this name.
extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = &listen;
}

namespace fettle::kernels::cuda {
namespace {

TEST(Nvtx, AToolHearsOfEachRange) {
  const std::unique_ptr<Ranges> ranges = nvtx_ranges();
  ASSERT_NE(ranges, nullptr);
  ranges->push("step");
  ranges->push("forward model.layers[0] (linear)");
  ranges->pop();
  ranges->pop();
  EXPECT_THAT(heard(), ::testing::ElementsAre("domain fettle", "+step",
                                              "+forward model.layers[0] (linear)", "-", "-"));
}

}  // namespace
}  // namespace fettle::kernels::cuda
