// FakeObjects: the objects of a FakeApiServer and what the API server does with a write. Pure apart
// from its own state: no threads, no network. Not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/http.h"
#include "kube/resource.h"

namespace fettle::kube {

// "batch/jobs": group and plural.
using Collection = std::string;
Collection collection_of(const Resource& resource);

// A write as an admission policy sees it.
struct Admission {
  std::string verb;      // create update patch apply delete
  std::string resource;  // plural
  std::string subresource;
  std::string manager;
  ObjectKey key;
  Json old_object;  // null on create
  Json object;      // null on delete
};

// A write that came in over HTTP.
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
  std::uint64_t version = 0;
  std::string type;  // ADDED MODIFIED DELETED
  Collection collection;
  Json object;
  Json before;  // null when ADDED
};

class FakeObjects {
 public:
  HttpResponse write(const FakeWrite& write);

  const Json* find(const Collection& collection, const ObjectKey& key) const;
  std::vector<Json> list(const Collection& collection) const;
  std::string version() const { return std::to_string(version_); }

  // Without rules; see FakeApiServer.
  Json set(const Collection& collection, Json object);
  void remove(const Collection& collection, const ObjectKey& key);
  int collect_garbage();
  void on_admission(std::function<Status(const Admission&)> admit) { admit_ = std::move(admit); }

  const std::vector<FakeChange>& changes() const { return changes_; }
  std::uint64_t compacted() const { return compacted_; }
  void compact() { compacted_ = version_; }

 private:
  struct Stored {
    Json object;
    std::map<std::string, std::set<std::string>> applied;  // by manager: JSON pointers of leaves
  };
  using Objects = std::map<ObjectKey, Stored>;

  HttpResponse create(const FakeWrite& write);
  HttpResponse change(const FakeWrite& write, const Stored& before);
  HttpResponse remove(const FakeWrite& write, const Stored& stored);
  Result<Json> changed(const FakeWrite& write, const Stored& before) const;
  Json store(const Collection& collection, const ObjectKey& key, Stored stored, bool bump);
  void erase(const Collection& collection, const ObjectKey& key);
  std::optional<HttpResponse> refused(const FakeWrite& write, const Json& old_object,
                                      const Json& object) const;
  bool owner_is_gone(const Json& object) const;
  bool has_blocking_dependents(const std::string& uid) const;

  std::map<Collection, Objects> collections_;
  std::vector<FakeChange> changes_;
  std::function<Status(const Admission&)> admit_;
  std::uint64_t version_ = 100;
  std::uint64_t compacted_ = 0;
  std::uint64_t made_ = 0;
};

// A Status object of the API.
HttpResponse status_response(int code, const std::string& reason, const std::string& message);

// Whether labels or fields of `object` fit a selector: "a=b,c!=d,e,!f"; of fields, paths from the
// root: "metadata.name=x,spec.study=y".
bool selector_matches(const Json& object, std::string_view selector, bool labels);

}  // namespace fettle::kube
