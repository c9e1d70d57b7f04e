// The members of Cache (cache.h).
#pragma once

#include <algorithm>

namespace fettle::kube {

template <class T>
typename Cache<T>::Pointer Cache<T>::get(const ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second.object;
}

template <class T>
std::vector<typename Cache<T>::Pointer> Cache<T>::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Pointer> out;
  out.reserve(objects_.size());
  for (const auto& [key, entry] : objects_) out.push_back(entry.object);
  return out;
}

template <class T>
std::size_t Cache<T>::size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

template <class T>
std::vector<typename Cache<T>::Pointer> Cache<T>::group(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<Pointer> out;
  const auto found = groups_.find(name);
  if (found == groups_.end()) return out;
  out.reserve(found->second.size());
  for (const Member& member : found->second) out.push_back(member.object);
  return out;
}

template <class T>
void Cache<T>::visit_group(const std::string& name,
                           const std::function<void(const T&)>& visit) const {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(name);
  if (found == groups_.end()) return;
  for (const Member& member : found->second) visit(*member.object);
}

template <class T>
void Cache<T>::put(T object) {
  const std::lock_guard writing(writing_);
  Changes changes;
  {
    const std::lock_guard lock(mutex_);
    const ObjectKey key = key_of(object);
    if (!is_newer_than_cached(key, object)) return;
    set(key, std::make_shared<const T>(std::move(object)), changes);
  }
  notify(changes);
}

template <class T>
void Cache<T>::erase(const ObjectKey& key, const std::string& uid, const std::string& version) {
  const std::lock_guard writing(writing_);
  Changes changes;
  {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    if (found != objects_.end()) {
      const Pointer& here = found->second.object;
      // The notice is late: a newer object of the same name, with another uid, stays.
      if (here->metadata.uid != uid && !is_newer(version, version_of(here))) return;
    }
    // Also if nothing is cached: the tombstone refuses older versions that come later.
    unset(key, uid, version, changes);
  }
  notify(changes);
}

template <class T>
void Cache<T>::replace(std::vector<T> objects, const std::string& version, const ListScope& scope) {
  const std::lock_guard writing(writing_);
  Changes changes;
  {
    const std::lock_guard lock(mutex_);
    std::set<ObjectKey> listed;
    for (T& object : objects) {
      listed.insert(key_of(object));
      list_one(std::move(object), scope, changes);
    }
    std::vector<std::pair<ObjectKey, std::string>> gone;
    for (const auto& [key, entry] : objects_) {
      if (listed.contains(key) || (!scope.ns.empty() && key.ns != scope.ns)) continue;
      if (!survives_list(entry, version, scope.mark))
        gone.emplace_back(key, entry.object->metadata.uid);
    }
    for (const auto& [key, uid] : gone) unset(key, uid, version, changes);
    seen_[scope.ns] = version;  // even if it went back: a list overrules
    unsynced_.erase(scope.ns);
  }
  notify(changes);
}

template <class T>
void Cache<T>::advance(const std::string& ns, const std::string& version) {
  const std::lock_guard lock(mutex_);
  std::string& seen = seen_[ns];
  if (is_newer(version, seen)) seen = version;
}

template <class T>
std::uint64_t Cache<T>::mark() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

template <class T>
void Cache<T>::expect(const std::vector<std::string>& namespaces) {
  const std::lock_guard lock(mutex_);
  unsynced_ = std::set<std::string>(namespaces.begin(), namespaces.end());
}

template <class T>
bool Cache<T>::synced() const {
  const std::lock_guard lock(mutex_);
  return unsynced_.empty();
}

template <class T>
bool Cache<T>::synced(const std::string& ns) const {
  const std::lock_guard lock(mutex_);
  return !unsynced_.contains(ns) && !unsynced_.contains("");
}

template <class T>
bool Cache<T>::is_newer_than_cached(const ObjectKey& key, const T& object) const {
  const std::string& version = object.metadata.resource_version;
  if (const auto found = objects_.find(key); found != objects_.end()) {
    return is_newer(version, version_of(found->second.object));
  }
  if (const auto grave = tombstones_.find(key); grave != tombstones_.end()) {
    if (grave->second.uid == object.metadata.uid) return false;
    if (!is_newer(version, grave->second.version)) return false;
  }
  // The informer has progressed past this version without the object: it was deleted since. Without
  // this an answer to an old write could resurrect an object whose tombstone was dropped.
  auto seen = seen_.find(key.ns);
  if (seen == seen_.end()) seen = seen_.find("");  // one list for all namespaces
  return seen == seen_.end() || is_newer(version, seen->second);
}

// Whether an entry survives a list that shows the object at `listed_version`, or does not show it
// at that version of the list. Only an entry that changed after the list was requested, and to a
// newer version, does: it was written while the list was on its way.
template <class T>
bool Cache<T>::survives_list(const Entry& entry, const std::string& listed_version,
                             std::uint64_t mark) const {
  return entry.changed > mark && is_newer(version_of(entry.object), listed_version);
}

template <class T>
void Cache<T>::list_one(T object, const ListScope& scope, Changes& changes) {
  const ObjectKey key = key_of(object);
  if (const auto found = objects_.find(key); found != objects_.end()) {
    // Written since the list was requested, and newer than its content.
    if (survives_list(found->second, object.metadata.resource_version, scope.mark)) return;
    // An unchanged object is no change: listeners hear nothing of it.
    const api::Metadata& here = found->second.object->metadata;
    if (here.uid == object.metadata.uid &&
        here.resource_version == object.metadata.resource_version) {
      return;
    }
  }
  const auto grave = tombstones_.find(key);
  // Deleted after the list was requested: the list shows the past.
  if (grave != tombstones_.end() && grave->second.uid == object.metadata.uid &&
      grave->second.changed > scope.mark) {
    return;
  }
  set(key, std::make_shared<const T>(std::move(object)), changes);
}

template <class T>
void Cache<T>::set(const ObjectKey& key, Pointer object, Changes& changes) {
  Entry& entry = objects_[key];
  Pointer before = entry.object;
  leave_group(before);
  entry = {object, ++mark_};
  join_group(object);
  tombstones_.erase(key);
  changes.push_back({std::move(before), std::move(object)});
}

template <class T>
void Cache<T>::unset(const ObjectKey& key, const std::string& uid, const std::string& version,
                     Changes& changes) {
  ++mark_;
  if (const auto found = objects_.find(key); found != objects_.end()) {
    leave_group(found->second.object);
    changes.push_back({std::move(found->second.object), nullptr});
    objects_.erase(found);
  }
  bury(key, uid, version);
}

template <class T>
void Cache<T>::bury(const ObjectKey& key, const std::string& uid, const std::string& version) {
  tombstones_[key] = {uid, version, mark_};
  burials_.emplace_back(mark_, key);
  while (burials_.size() > kMaxTombstones) {
    const auto& [changed, oldest] = burials_.front();
    const auto grave = tombstones_.find(oldest);
    // Otherwise a later deletion or a new object of that name has replaced this tombstone.
    if (grave != tombstones_.end() && grave->second.changed == changed) tombstones_.erase(grave);
    burials_.pop_front();
  }
}

// The position of `object` in the sorted group, or where to insert it.
template <class T>
typename Cache<T>::Group::iterator Cache<T>::place_of(Group& group, const T& object) const {
  const std::int64_t order = order_(object);
  const ObjectKey key = key_of(object);
  return std::ranges::partition_point(group, [&](const Member& member) {
    if (member.order != order) return member.order < order;
    return key_of(*member.object) < key;
  });
}

template <class T>
void Cache<T>::join_group(const Pointer& object) {
  const std::string name = index_ ? index_(*object) : "";
  if (name.empty()) return;
  Group& group = groups_[name];
  group.insert(place_of(group, *object), Member{order_(*object), object});
}

template <class T>
void Cache<T>::leave_group(const Pointer& object) {
  if (object == nullptr || !index_) return;
  const auto found = groups_.find(index_(*object));
  if (found == groups_.end()) return;
  // It is there: objects do not change, so join_group() chose the same group and place.
  found->second.erase(place_of(found->second, *object));
  if (found->second.empty()) groups_.erase(found);
}

template <class T>
void Cache<T>::notify(const Changes& changes) const {
  for (const Change& change : changes) {
    for (const Listener& listener : listeners_) listener(change.before, change.after);
  }
}

}  // namespace fettle::kube
