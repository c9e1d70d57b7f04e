// The members of Informer (informer.h).
#pragma once

namespace fettle::kube {

template <class T>
Informer<T>::Informer(HttpTransport& transport, InformerOptions options, Read read)
    : transport_(transport), options_(std::move(options)), read_(std::move(read)) {
  if (!options_.namespaces.empty()) cache_.expect(options_.namespaces);
}

template <class T>
void Informer<T>::start() {
  std::vector<std::string> namespaces = options_.namespaces;
  if (namespaces.empty()) namespaces.emplace_back("");  // one list of all namespaces
  for (const std::string& ns : namespaces) {
    feeds_.push_back(std::make_unique<Feed>(*this, ns));
    const WatchTarget target{options_.resource, ns, options_.label_selector, options_.backoff,
                             options_.page_size};
    // Another one for each loop, so that they do not retry in step.
    const std::uint64_t seed = options_.seed + loops_.size();
    loops_.push_back(
        std::make_unique<WatchLoop>(transport_, *feeds_.back(), target, seed, options_.on_call));
  }
  for (const auto& loop : loops_) loop->start();
}

template <class T>
void Informer<T>::stop() {
  for (const auto& loop : loops_) loop->request_stop();
  for (const auto& loop : loops_) loop->join();
}

template <class T>
bool Informer<T>::wait_synced(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  for (const auto& loop : loops_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (!loop->wait_listed(std::chrono::ceil<std::chrono::milliseconds>(left))) return false;
  }
  return cache_.synced();
}

template <class T>
std::optional<std::string> Informer<T>::last_error() const {
  for (const auto& loop : loops_) {
    if (auto error = loop->last_error()) return error;
  }
  return std::nullopt;
}

template <class T>
std::optional<std::string> Informer<T>::trouble(const std::string& ns,
                                                std::chrono::milliseconds least) const {
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    const bool covers = feeds_[i]->ns().empty() || feeds_[i]->ns() == ns;
    if (!covers) continue;
    if (auto error = loops_[i]->trouble(least)) return error;
  }
  return std::nullopt;
}

template <class T>
std::vector<typename Informer<T>::Missing> Informer<T>::missing() const {
  std::vector<Missing> out;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    const std::string& ns = feeds_[i]->ns();
    if (cache_.synced(ns)) continue;
    out.push_back({ns, loops_[i]->last_error().value_or(""), loops_[i]->is_refused()});
  }
  return out;
}

// For an object that cannot be read its last readable version stands in: a list that left it out
// would remove it from the cache.
template <class T>
std::optional<T> Informer<T>::read(const Json& object) {
  Result<T> value = read_(object);
  if (value.ok()) return std::move(value).value();
  const ObjectKey key = key_of(object);
  report_error("cannot read " + describe(options_.resource, key) + ": " + value.error().message);
  const typename Cache<T>::Pointer before = cache_.get(key);
  if (before == nullptr) return std::nullopt;
  return *before;
}

template <class T>
void Informer<T>::Feed::list_begins() {
  mark_ = informer_.cache_.mark();
  objects_.clear();
}

template <class T>
void Informer<T>::Feed::listed(const Json& object) {
  if (std::optional<T> value = informer_.read(object)) objects_.push_back(*std::move(value));
}

template <class T>
void Informer<T>::Feed::list_ends(const std::string& version) {
  informer_.cache_.replace(std::move(objects_), version, {ns_, mark_});
  objects_ = {};
}

template <class T>
void Informer<T>::Feed::changed(const Json& object) {
  if (std::optional<T> value = informer_.read(object)) informer_.cache_.put(*std::move(value));
}

template <class T>
void Informer<T>::Feed::gone(const Json& object) {
  informer_.cache_.erase(key_of(object), text_at(object, {"metadata", "uid"}),
                         text_at(object, {"metadata", "resourceVersion"}));
}

template <class T>
void Informer<T>::Feed::advanced(const std::string& version) {
  informer_.cache_.advance(ns_, version);
}

}  // namespace fettle::kube
