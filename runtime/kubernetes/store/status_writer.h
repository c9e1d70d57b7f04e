// StatusWriter: writes the status of Studies and Trials by server-side apply.
//
// CRDs that are older than this operator lack some fields, nested fields too, and the API server
// refuses an apply with such a field as a whole. So the field is omitted, and tried again from time
// to time: an upgrade may install the CRDs after the operator.
//
// Thread-safe. Client and clock must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/meta/metadata.h"
#include "base/json.h"
#include "base/result.h"
#include "core/control/clock.h"
#include "kube/client/client.h"
#include "runtime/kubernetes/store/entries.h"

namespace fettle::kubernetes {

// The frame of an object to write: its name and the resourceVersion it was planned from.
Json envelope(const kube::Resource& resource, const api::Metadata& metadata);

class StatusWriter {
 public:
  StatusWriter(kube::Client& client, control::Clock& clock) : client_(client), clock_(clock) {}

  // Returns the stored object.
  Result<Json> apply(const kube::Resource& resource, const api::Metadata& metadata, Json status);

  // Writes the condition Readable of an object that cannot be read, or can be read again. Returns
  // the stored object; absent: nothing was written, and the next reconcile tries again if it must.
  std::optional<Json> report_readability(const kube::Resource& resource,
                                         const api::Metadata& metadata,
                                         const Readability& readability);

 private:
  kube::Client& client_;
  control::Clock& clock_;
  std::mutex mutex_;
  // Fields of status that the installed CRDs lack, by resource and path, and when the server said
  // so. Guarded by mutex_.
  std::map<std::pair<std::string, std::string>, std::int64_t> undeclared_;
};

}  // namespace fettle::kubernetes
