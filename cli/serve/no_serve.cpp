// Builds without Kubernetes have no HTTP server, which the operator and this page share.
#include "cli/serve/serve.h"

namespace fettle::cli {

Result<int> serve(const MakeSource&, const ServeSettings&) {
  return io_error(
      "this fettle was built without its HTTP server; fettle report writes the page of a study as "
      "a "
      "file, or build it with FETTLE_KUBE=ON");
}

}  // namespace fettle::cli
