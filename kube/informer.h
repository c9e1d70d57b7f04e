// Informer: a copy, kept up to date by list and watch, of all objects of one resource.
//
// The protocol is in watcher.h, a pure state machine; an Informer is its driver: one thread that
// owns one watch. The Cache holds typed values, never parsed JSON. Writers put what the server
// returned into the Cache themselves (read your writes): an object only ever becomes newer, by
// resourceVersion, and a list or event older than a write of ours changes nothing.
//
// Listeners are called from the informer's thread or from the thread that wrote, one at a time per
// cache; they must return quickly. Cache is thread-safe; Informer is started and stopped by one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/metadata.h"
#include "base/json.h"
#include "base/result.h"
#include "kube/client.h"

namespace fettle::kube {

template <class T>
class Cache {
 public:
  using Pointer = std::shared_ptr<const T>;
  // Exactly one of `before`, `after` may be null: created, or gone.
  using Listener = std::function<void(const Pointer& before, const Pointer& after)>;

  Pointer get(const ObjectKey& key) const;
  std::vector<Pointer> all() const;

  // An object under a second name: `index(object)` is the group it belongs to, "" = none. Set
  // before the first object comes.
  void index_by(std::function<std::string(const T&)> index);
  std::vector<Pointer> group(const std::string& name) const;

  // Listeners: set before the first object comes.
  void on_change(Listener listener);

  // `object` as the server has it. Ignored when older than what is here, or than its deletion.
  void put(T object);
  // The object is gone; `uid` tells it from a later one of the name, `version` is the deletion's.
  void erase(const ObjectKey& key, const std::string& uid, const std::string& version);
  // What a list at `version` showed is all there is, except what was put with a newer version.
  void replace(std::vector<T> objects, const std::string& version);
  bool synced() const;

  // (the rest is in informer_inl.h or below: the owner of this file decides)
};

}  // namespace fettle::kube
