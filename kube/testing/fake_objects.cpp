#include "kube/testing/fake_objects.h"

#include <algorithm>
#include <chrono>

#include "api/fields/timestamp.h"
#include "base/merge_patch.h"
#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

std::string uid_text(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return "00000000-0000-4000-8000-" +
         std::string(12 - std::min<std::size_t>(12, digits.size()), '0') + digits;
}

std::string version_of(const Json& object) {
  return text_at(object, {"metadata", "resourceVersion"});
}

Json& metadata_of(Json& object) {
  if (object.find("metadata") == nullptr) object.set("metadata", Json::object());
  return *object.find("metadata");
}

Json member(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr ? Json() : *found;
}

void set_or_erase(Json& object, std::string_view key, Json value) {
  if (value.is_null()) {
    object.erase(key);
  } else {
    object.set(key, std::move(value));
  }
}

// Restores the fields that a write of spec or of a subresource may not change.
void protect(const FakeWrite& write, const Json& before, Json& after) {
  if (write.subresource == "status") {
    Json whole = before;
    set_or_erase(whole, "status", member(after, "status"));
    after = std::move(whole);
    return;
  }
  set_or_erase(after, "status", member(before, "status"));
  Json& metadata = metadata_of(after);
  for (const char* key : {"uid", "creationTimestamp", "generation", "deletionTimestamp",
                          "resourceVersion", "name", "namespace"}) {
    set_or_erase(metadata, key, member(member(before, "metadata"), key));
  }
}

bool spec_differs(Json a, Json b) {
  for (Json* object : {&a, &b}) {
    object->erase("metadata");
    object->erase("status");
  }
  return !(a == b);
}

bool has_finalizers(const Json& object) {
  return !array_at(object, {"metadata", "finalizers"}).empty();
}

bool is_being_deleted(const Json& object) {
  return !text_at(object, {"metadata", "deletionTimestamp"}).empty();
}

HttpResponse object_response(int code, const Json& object) { return {code, object.dump(), {}, {}}; }

HttpResponse conflict(const FakeWrite& write, const std::string& why) {
  return status_response(409, "Conflict",
                         "Operation cannot be fulfilled on " + write.collection + " \"" +
                             write.key.name + "\": " + why);
}

// A manager owns fields of the object and fields of its status separately.
std::string owner_of(const FakeWrite& write) { return write.manager + '/' + write.subresource; }

// A given resourceVersion or uid must be the object's.
std::optional<HttpResponse> stale(const FakeWrite& write, const Json& given, const Json& before) {
  const std::string version = text_at(given, {"resourceVersion"});
  if (!version.empty() && version != version_of(before)) {
    return conflict(write,
                    "the object has been modified; please apply your changes to the latest "
                    "version and try again");
  }
  const std::string uid = text_at(given, {"uid"});
  if (!uid.empty() && uid != text_at(before, {"metadata", "uid"})) {
    return conflict(write, "Precondition failed: UID in precondition: " + uid +
                               ", UID in object meta: " + text_at(before, {"metadata", "uid"}));
  }
  return std::nullopt;
}

}  // namespace

Collection collection_of(const Resource& resource) {
  return std::string(resource.group) + '/' + std::string(resource.plural);
}

HttpResponse status_response(int code, const std::string& reason, const std::string& message) {
  const Json status = Json::object({{"kind", "Status"},
                                    {"apiVersion", "v1"},
                                    {"status", code < 300 ? "Success" : "Failure"},
                                    {"message", message},
                                    {"reason", reason},
                                    {"code", code}});
  return {code, status.dump(), {}, {}};
}

const Json* FakeObjects::find(const Collection& collection, const ObjectKey& key) const {
  const auto objects = collections_.find(collection);
  if (objects == collections_.end()) return nullptr;
  const auto found = objects->second.find(key);
  return found == objects->second.end() ? nullptr : &found->second.object;
}

std::vector<Json> FakeObjects::list(const Collection& collection) const {
  std::vector<Json> out;
  const auto objects = collections_.find(collection);
  if (objects == collections_.end()) return out;
  for (const auto& [key, stored] : objects->second) out.push_back(stored.object);
  return out;
}

HttpResponse FakeObjects::write(const FakeWrite& write) {
  if (write.verb == "create") {
    const Json* there = find(write.collection, write.key);
    if (there != nullptr && !write.key.name.empty()) {
      // Admission comes first: a full quota refuses even an existing object.
      if (auto answer = refused(write, *there, write.body)) return *answer;
      return status_response(409, "AlreadyExists",
                             write.collection + " \"" + write.key.name + "\" already exists");
    }
    return create(write, {write.body, {}});
  }
  const auto found = collections_[write.collection].find(write.key);
  if (found == collections_[write.collection].end()) {
    if (write.verb == "apply" && write.subresource.empty()) {
      Stored fresh;
      fresh.object = Json::object(
          {{"apiVersion", member(write.body, "apiVersion")}, {"kind", member(write.body, "kind")}});
      apply_leaves(fresh.object, write.body, owner_of(write), fresh.owners);
      return create(write, std::move(fresh));
    }
    return status_response(404, "NotFound",
                           write.collection + " \"" + write.key.name + "\" not found");
  }
  if (write.verb == "delete") {
    const Json before = found->second.object;
    return remove(write, before);
  }
  const Stored before = found->second;
  return change(write, before);
}

HttpResponse FakeObjects::create(const FakeWrite& write, Stored fresh) {
  Json& object = fresh.object;
  Json& metadata = metadata_of(object);
  std::string name = write.key.name;
  if (name.empty()) {
    const std::string prefix = text_at(metadata, {"generateName"});
    if (prefix.empty()) {
      return status_response(422, "Invalid", "name or generateName is required");
    }
    name = prefix + std::to_string(made_ + 1);
  }
  metadata.set("name", name);
  if (!write.key.ns.empty()) metadata.set("namespace", write.key.ns);
  metadata.set("uid", uid_text(made_ + 1));
  metadata.set("creationTimestamp", now_text());
  metadata.set("generation", 1);
  object.erase("status");
  if (auto answer = invalid(Json(), object)) return *answer;
  if (auto answer = refused(write, Json(), object)) return *answer;
  if (write.dry_run) return object_response(201, object);
  ++made_;
  put(write.collection, std::move(fresh));
  return object_response(201, *find(write.collection, {write.key.ns, name}));
}

HttpResponse FakeObjects::change(const FakeWrite& write, const Stored& before) {
  if (auto answer = stale(write, member(write.body, "metadata"), before.object)) return *answer;
  Stored after = before;
  if (write.verb == "update") {
    after.object = write.body;
  } else if (write.verb == "patch") {
    merge_patch(after.object, write.body);
  } else {
    apply_leaves(after.object, write.body, owner_of(write), after.owners);
  }
  protect(write, before.object, after.object);
  if (auto answer = invalid(before.object, after.object)) return *answer;
  if (spec_differs(before.object, after.object)) {
    metadata_of(after.object)
        .set("generation", integer_at(before.object, {"metadata", "generation"}) + 1);
  }
  if (auto answer = refused(write, before.object, after.object)) return *answer;
  if (write.dry_run) return object_response(200, after.object);
  if (after.object == before.object) {
    collections_[write.collection][write.key] = std::move(after);
  } else {
    put(write.collection, std::move(after));
  }
  const Json result = *find(write.collection, write.key);
  if (is_being_deleted(result) && !has_finalizers(result)) erase(write.collection, write.key);
  return object_response(200, result);
}

HttpResponse FakeObjects::remove(const FakeWrite& write, const Json& before) {
  if (auto answer = stale(write, member(write.body, "preconditions"), before)) return *answer;
  if (auto answer = refused(write, before, Json())) return *answer;
  if (write.dry_run) return object_response(200, before);
  const bool foreground = text_at(write.body, {"propagationPolicy"}) == "Foreground" &&
                          has_dependents(text_at(before, {"metadata", "uid"}));
  if (!foreground && !has_finalizers(before)) {
    erase(write.collection, write.key);
    return status_response(200, "", "");
  }
  Stored marked = collections_[write.collection][write.key];
  Json& metadata = metadata_of(marked.object);
  if (!is_being_deleted(before)) metadata.set("deletionTimestamp", now_text());
  Json finalizers = Json(array_at(before, {"metadata", "finalizers"}));
  if (foreground && !is_being_deleted(before)) finalizers.push_back(kForegroundFinalizer);
  metadata.set("finalizers", std::move(finalizers));
  if (!(marked.object == before)) put(write.collection, std::move(marked));
  return object_response(200, *find(write.collection, write.key));
}

std::optional<HttpResponse> FakeObjects::invalid(const Json& before, Json& after) const {
  if (!validate_) return std::nullopt;
  Result<Json> valid = validate_(before, after);
  if (!valid.ok()) return status_response(422, "Invalid", valid.error().message);
  after = std::move(valid).value();
  return std::nullopt;
}

std::optional<HttpResponse> FakeObjects::refused(const FakeWrite& write, const Json& before,
                                                 const Json& after) const {
  if (!admit_) return std::nullopt;
  const std::string plural = write.collection.substr(write.collection.find('/') + 1);
  const Status verdict =
      admit_({write.verb, plural, write.subresource, write.manager, write.key, before, after});
  if (verdict.ok()) return std::nullopt;
  const Error& error = verdict.error();
  if (error.code == ErrorCode::kForbidden) return status_response(403, "Forbidden", error.message);
  if (error.code == ErrorCode::kUnavailable) {
    return status_response(503, "ServiceUnavailable", error.message);
  }
  return status_response(422, "Invalid", error.message);
}

std::int64_t FakeObjects::now_ms() const {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  return (now_ms_ ? now_ms_() : now) / 1000 * 1000;
}

std::string FakeObjects::now_text() const { return api::format_timestamp(now_ms()); }

void FakeObjects::put(const Collection& collection, Stored stored) {
  metadata_of(stored.object).set("resourceVersion", std::to_string(++version_));
  Stored& place = collections_[collection][key_of(stored.object)];
  changes_.push_back({version_, collection, place.object, stored.object, stored.object});
  place = std::move(stored);
}

bool FakeObjects::erase(const Collection& collection, const ObjectKey& key) {
  Objects& objects = collections_[collection];
  const auto found = objects.find(key);
  if (found == objects.end()) return false;
  Json last = found->second.object;
  metadata_of(last).set("resourceVersion", std::to_string(++version_));
  changes_.push_back({version_, collection, found->second.object, Json(), std::move(last)});
  objects.erase(found);
  return true;
}

Json FakeObjects::set(const Collection& collection, Json object) {
  const ObjectKey key = key_of(object);
  const Json* there = find(collection, key);
  Json& metadata = metadata_of(object);
  const auto fill_in = [&](const char* field, const Json& otherwise) {
    if (metadata.find(field) != nullptr) return;
    const Json* old = there == nullptr ? nullptr : value_at(*there, {"metadata", field});
    metadata.set(field, old == nullptr ? otherwise : *old);
  };
  fill_in("uid", uid_text(++made_));
  fill_in("creationTimestamp", now_text());
  fill_in("generation", 1);
  Stored stored = there == nullptr ? Stored{} : collections_[collection][key];
  stored.object = std::move(object);
  put(collection, std::move(stored));
  return *find(collection, key);
}

const Json* FakeObjects::find_uid(const std::string& uid) const {
  for (const auto& [collection, objects] : collections_) {
    for (const auto& [key, stored] : objects) {
      if (text_at(stored.object, {"metadata", "uid"}) == uid) return &stored.object;
    }
  }
  return nullptr;
}

bool FakeObjects::has_dependents(const std::string& uid) const {
  for (const auto& [collection, objects] : collections_) {
    for (const auto& [key, stored] : objects) {
      for (const Json& owner : array_at(stored.object, {"metadata", "ownerReferences"})) {
        if (text_at(owner, {"uid"}) == uid) return true;
      }
    }
  }
  return false;
}

// Whether the owners are gone, or wait in the foreground for their dependents to go.
bool FakeObjects::is_garbage(const Json& object) const {
  const Json::Array& owners = array_at(object, {"metadata", "ownerReferences"});
  if (owners.empty()) return false;
  return std::ranges::all_of(owners, [&](const Json& reference) {
    const Json* owner = find_uid(text_at(reference, {"uid"}));
    if (owner == nullptr) return true;
    const Json::Array& finalizers = array_at(*owner, {"metadata", "finalizers"});
    return is_being_deleted(*owner) &&
           std::ranges::find(finalizers, Json(kForegroundFinalizer)) != finalizers.end();
  });
}

// Makes one step of the garbage collector for one object; returns whether the object is gone.
bool FakeObjects::collect(const Collection& collection, const ObjectKey& key) {
  const Json object = *find(collection, key);
  const std::string uid = text_at(object, {"metadata", "uid"});
  if (is_being_deleted(object)) {
    if (has_dependents(uid)) return false;
    Stored stored = collections_[collection][key];
    Json finalizers = Json::array();
    bool waited = false;
    for (const Json& finalizer : array_at(object, {"metadata", "finalizers"})) {
      waited = waited || finalizer == Json(kForegroundFinalizer);
      if (!(finalizer == Json(kForegroundFinalizer))) finalizers.push_back(finalizer);
    }
    if (!waited) return false;
    if (finalizers.as_array().empty()) return erase(collection, key);
    metadata_of(stored.object).set("finalizers", std::move(finalizers));
    put(collection, std::move(stored));
    return false;
  }
  if (!is_garbage(object)) return false;
  FakeWrite write;
  write.verb = "delete";
  write.collection = collection;
  write.key = key;
  write.body = Json::object({{"propagationPolicy", "Foreground"}});
  remove(write, object);
  return find(collection, key) == nullptr;
}

int FakeObjects::collect_garbage() {
  int collected = 0;
  for (bool more = true; more;) {
    const std::int64_t before = version_;
    std::vector<std::pair<Collection, ObjectKey>> keys;
    for (const auto& [collection, objects] : collections_) {
      for (const auto& [key, stored] : objects) keys.emplace_back(collection, key);
    }
    for (const auto& [collection, key] : keys) collected += collect(collection, key) ? 1 : 0;
    more = version_ != before;
  }
  return collected;
}

}  // namespace fettle::kube
