// FakeObjects: the objects of a FakeApiServer, and the API server's rules for writes. No threads
// and no network. Not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client/http.h"
#include "kube/objects/resource.h"
#include "kube/testing/fake_apply.h"

namespace fettle::kube {

// "batch/jobs": group and plural.
using Collection = std::string;
Collection collection_of(const Resource& resource);

// A write for an admission policy.
struct Admission {
  std::string verb;      // create update patch apply delete
  std::string resource;  // plural
  std::string subresource;
  std::string manager;
  ObjectKey key;
  Json old_object;  // null on create
  Json object;      // as it would be stored; null on delete
};

// A write that arrived over HTTP.
struct FakeWrite {
  std::string verb;
  Collection collection;
  std::string subresource;
  std::string manager;
  ObjectKey key;
  Json body;
  bool dry_run = false;
};

// One change of one object, for watches.
struct FakeChange {
  std::int64_t version = 0;
  Collection collection;
  Json before;  // null if created
  Json after;   // null if deleted
  Json last;    // the object for a watch: `after`, or the state at deletion with its version
};

// Checks `after`, which replaces `before` (null on create), against the schema of some resource.
// Returns it with its defaults, or kInvalid.
using Validate = std::function<Result<Json>(const Json& before, const Json& after)>;

class FakeObjects {
 public:
  HttpResponse write(const FakeWrite& write);

  const Json* find(const Collection& collection, const ObjectKey& key) const;
  std::vector<Json> list(const Collection& collection) const;
  std::int64_t version() const { return version_; }

  // Past all rules; see FakeApiServer.
  Json set(const Collection& collection, Json object);
  bool erase(const Collection& collection, const ObjectKey& key);
  int collect_garbage();
  void on_admission(std::function<Status(const Admission&)> admit) { admit_ = std::move(admit); }
  // Unix milliseconds; the machine's clock otherwise.
  void use_clock(std::function<std::int64_t()> now_ms) { now_ms_ = std::move(now_ms); }
  // In whole seconds, like times of Kubernetes.
  std::int64_t now_ms() const;
  void on_validation(Validate validate) { validate_ = std::move(validate); }

  const std::vector<FakeChange>& changes() const { return changes_; }
  std::int64_t compacted() const { return compacted_; }
  void compact() { compacted_ = version_; }

 private:
  struct Stored {
    Json object;
    LeavesByManager owners;
  };
  using Objects = std::map<ObjectKey, Stored>;

  HttpResponse create(const FakeWrite& write, Stored fresh);
  HttpResponse change(const FakeWrite& write, const Stored& before);
  HttpResponse remove(const FakeWrite& write, const Json& before);
  std::optional<HttpResponse> refused(const FakeWrite& write, const Json& before,
                                      const Json& after) const;
  // Fills in defaults; returns the answer if the object is invalid.
  std::optional<HttpResponse> invalid(const Json& before, Json& after) const;
  std::string now_text() const;
  void put(const Collection& collection, Stored stored);
  bool is_garbage(const Json& object) const;
  bool collect(const Collection& collection, const ObjectKey& key);
  const Json* find_uid(const std::string& uid) const;
  bool has_dependents(const std::string& uid) const;

  std::map<Collection, Objects> collections_;
  std::vector<FakeChange> changes_;
  std::function<Status(const Admission&)> admit_;
  Validate validate_;
  std::function<std::int64_t()> now_ms_;
  std::int64_t version_ = 100;
  std::int64_t compacted_ = 0;
  std::int64_t made_ = 0;
};

// An answer with a Status object: HTTP `code`.
HttpResponse status_response(int code, const std::string& reason, const std::string& message);

}  // namespace fettle::kube
