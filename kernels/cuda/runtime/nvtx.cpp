// NVTX 3 consists of headers; they load the library of the attached tool, if any.
#include "kernels/cuda/runtime/nvtx.h"

#include <nvtx3/nvToolsExt.h>

namespace fettle::kernels::cuda {
namespace {

class NvtxRanges final : public Ranges {
 public:
  explicit NvtxRanges(nvtxDomainHandle_t domain) : domain_(domain) {}

  void push(const std::string& name) override {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name.c_str();
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void pop() override { nvtxDomainRangePop(domain_); }

 private:
  const nvtxDomainHandle_t domain_;
};

}  // namespace

// The domain lives as long as the process: a tool shows its ranges until then.
std::unique_ptr<Ranges> nvtx_ranges() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("fettle");
  if (domain == nullptr) return nullptr;
  return std::make_unique<NvtxRanges>(domain);
}

}  // namespace fettle::kernels::cuda
