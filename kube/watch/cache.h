// Cache: the objects of one resource, as typed values, never parsed JSON.
//
// It has two writers: the informer, from lists and watches, and callers that wrote to the API
// server, with its answer (read your writes). So an object is only replaced by a newer
// resourceVersion; a version that is older than the cached one, than a deletion, or than the
// informer's progress is ignored. A list is the exception: the server answers it from its newest
// state, so it overrules everything cached before its request, even if versions went back (etcd
// restored from a backup).
//
// Listeners are called from the thread that changed the cache, one at a time, in the order of the
// changes; they may read the cache but not change it, and must return quickly. Thread-safe.
// T has `api::Metadata metadata`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/meta/metadata.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

// Deletions kept as tombstones, so that older versions are ignored; the oldest are dropped.
inline constexpr std::size_t kMaxTombstones = 4096;

// The part of a cache that a list covered, and when it was requested.
struct ListScope {
  std::string ns;          // "" = all namespaces
  std::uint64_t mark = 0;  // Cache::mark() before the list was sent; 0 = unknown
};

template <class T>
class Cache {
 public:
  using Pointer = std::shared_ptr<const T>;
  // At most one of `before` and `after` is null: the object was created, or is gone.
  using Listener = std::function<void(const Pointer& before, const Pointer& after)>;

  // Returns the object, or null. all() is sorted by namespace and name.
  Pointer get(const ObjectKey& key) const;
  std::vector<Pointer> all() const;
  std::size_t size() const;

  // `index(object)` names the group of an object, "" = none; a group is sorted by `order(object)`,
  // then by namespace and name. Set before the first object.
  void index_by(
      std::function<std::string(const T&)> index,
      std::function<std::int64_t(const T&)> order = [](const T&) { return std::int64_t{0}; }) {
    index_ = std::move(index);
    order_ = std::move(order);
  }
  std::vector<Pointer> group(const std::string& name) const;
  // The same without a copy, while nothing changes: `visit` must not use the cache.
  void visit_group(const std::string& name, const std::function<void(const T&)>& visit) const;

  // Adds a listener; call before the first object arrives.
  void on_change(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Stores `object` as the server has it, from an answered write or a watch.
  void put(T object);
  // Removes the object; `uid` tells it from a later one of that name, `version` is that of its
  // deletion, "" if it is not known.
  void erase(const ObjectKey& key, const std::string& uid, const std::string& version);
  // Replaces the cache by a list at `version`, except objects with a newer version that were put
  // after the request of the list (or, if that time is unknown, at any time).
  void replace(std::vector<T> objects, const std::string& version, const ListScope& scope = {});

  // Records that the informer saw everything up to `version` in namespace `ns` ("" = all).
  void advance(const std::string& ns, const std::string& version);
  // Returns a number that grows with every change: it orders changes against the request of a list.
  std::uint64_t mark() const;

  // Expects lists for these namespaces instead of one for all. Call before the first list.
  void expect(const std::vector<std::string>& namespaces);
  // Whether every expected list has arrived, or the one that covers this namespace.
  bool synced() const;
  bool synced(const std::string& ns) const;

 private:
  struct Entry {
    Pointer object;
    std::uint64_t changed = 0;  // the mark of the change
  };
  struct Tombstone {
    std::string uid;
    std::string version;
    std::uint64_t changed = 0;
  };
  struct Change {
    Pointer before;
    Pointer after;
  };
  using Changes = std::vector<Change>;
  // Contiguous in memory: groups of thousands are read again and again.
  struct Member {
    std::int64_t order = 0;
    Pointer object;
  };
  using Group = std::vector<Member>;

  static ObjectKey key_of(const T& object) { return {object.metadata.ns, object.metadata.name}; }
  static const std::string& version_of(const Pointer& object) {
    return object->metadata.resource_version;
  }

  // These require mutex_.
  bool is_newer_than_cached(const ObjectKey& key, const T& object) const;
  bool survives_list(const Entry& entry, const std::string& listed_version,
                     std::uint64_t mark) const;
  void set(const ObjectKey& key, Pointer object, Changes& changes);
  void unset(const ObjectKey& key, const std::string& uid, const std::string& version,
             Changes& changes);
  void bury(const ObjectKey& key, const std::string& uid, const std::string& version);
  void list_one(T object, const ListScope& scope, Changes& changes);
  typename Group::iterator place_of(Group& group, const T& object) const;
  void join_group(const Pointer& object);
  void leave_group(const Pointer& object);

  // With writing_ held, and without mutex_: listeners read the cache.
  void notify(const Changes& changes) const;

  std::function<std::string(const T&)> index_;
  std::function<std::int64_t(const T&)> order_;
  std::vector<Listener> listeners_;

  std::mutex writing_;  // held while one change is made and reported; taken before mutex_
  mutable std::mutex mutex_;
  std::map<ObjectKey, Entry> objects_;
  std::map<std::string, Group> groups_;
  std::map<ObjectKey, Tombstone> tombstones_;
  std::deque<std::pair<std::uint64_t, ObjectKey>> burials_;  // tombstones_ by age
  std::map<std::string, std::string> seen_;  // by namespace: newest version of lists and watches
  std::set<std::string> unsynced_{""};
  std::uint64_t mark_ = 1;
};

}  // namespace fettle::kube

#include "kube/watch/cache.inl"
