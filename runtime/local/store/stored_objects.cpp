#include "runtime/local/store/stored_objects.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "runtime/local/store/stored_json.h"

namespace fettle::local {
namespace {

using control::Kind;

constexpr std::size_t kMostUnknown = 5;  // unknown fields that a warning names

control::Key key_of(const api::Metadata& metadata) { return {metadata.ns, metadata.name}; }

template <class Object>
std::pair<Kind, control::Key> place_of(const Object& object) {
  return {change_of(object).kind, key_of(object.metadata)};
}

std::int64_t version_of(const api::Metadata& metadata) {
  std::int64_t version = 0;
  const std::string& text = metadata.resource_version;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

// Reads strictly a document that a person wrote, or leniently an object as any version may have
// stored it.
Result<api::Study> read_object(const Json& document, api::UnknownFields unknown,
                               const api::Study*) {
  api::ReadStudy read = api::read_study(document, unknown);
  if (read.errors.empty()) return std::move(read.study);
  return invalid(read.errors[0].path + ": " + read.errors[0].message);
}

Result<api::Trial> read_object(const Json& document, api::UnknownFields unknown,
                               const api::Trial*) {
  return api::read_trial(document, unknown);
}

Json write_object(const api::Study& study) { return api::write_study(study); }
Json write_object(const api::Trial& trial) { return api::write_trial(trial); }

// One object that cannot be read back would make the whole store unreadable. New objects must be
// valid; stored objects may be valid for another version only.
template <class Object>
Status check_readable(const Object& object, const std::string& text, bool is_new) {
  FETTLE_ASSIGN(const Json document, parse_json(text));
  const auto fields =
      is_new ? api::UnknownFields::kMistakes : api::UnknownFields::kIgnoredWithBounds;
  const Result<Object> read = read_object(document, fields, &object);
  if (read.ok()) return success();
  return invalid(describe(change_of(object).kind, object.metadata.name) +
                 " cannot be stored: " + read.error().message);
}

// `objects`: a map by key. kNotFound.
template <class Objects>
Result<typename Objects::mapped_type> find_in(const Objects& objects, Kind kind,
                                              const control::Key& key) {
  const auto found = objects.find(key);
  if (found == objects.end()) return not_found("there is no " + describe(kind, key.name));
  return found->second;
}

template <class Objects>
std::vector<typename Objects::mapped_type> values_of(const Objects& objects) {
  std::vector<typename Objects::mapped_type> values;
  values.reserve(objects.size());
  for (const auto& [key, object] : objects) values.push_back(object);
  return values;
}

}  // namespace

control::Change change_of(const api::Study& study) {
  return {Kind::kStudy, key_of(study.metadata), study.metadata.name};
}

control::Change change_of(const api::Trial& trial) {
  return {Kind::kTrial, key_of(trial.metadata), trial.spec.study};
}

std::string describe(Kind kind, const std::string& name) {
  return std::string(kind == Kind::kStudy ? "study " : "trial ") + name;
}

Status StoredObjects::load(Kind kind, const std::string& text) {
  FETTLE_ASSIGN(Json document, parse_json(text));
  return kind == Kind::kTrial ? load_object<api::Trial>(std::move(document))
                              : load_object<api::Study>(std::move(document));
}

template <class Object>
Status StoredObjects::load_object(Json document) {
  const Object* const type = nullptr;
  FETTLE_ASSIGN(Object object, read_object(document, api::UnknownFields::kIgnoredWithBounds, type));
  const Json known = write_object(object);
  const bool is_foreign = document != known && !unknown_paths(document, known, 1).empty();
  if (is_foreign) {
    foreign_[place_of(object)] = std::move(document);
  } else {
    foreign_.erase(place_of(object));
  }
  put(std::move(object));
  return success();
}

void StoredObjects::put(api::Study study) {
  version_ = std::max(version_, version_of(study.metadata));
  studies_[key_of(study.metadata)] = std::move(study);
}

void StoredObjects::put(api::Trial trial) {
  version_ = std::max(version_, version_of(trial.metadata));
  const auto shared = std::make_shared<const api::Trial>(std::move(trial));
  trials_[key_of(shared->metadata)] = shared;
  by_study_[{shared->metadata.ns, shared->spec.study}][shared->spec.index] = shared;
}

Result<api::Study> StoredObjects::study(const control::Key& key) const {
  return find_in(studies_, Kind::kStudy, key);
}

Result<api::TrialPtr> StoredObjects::trial(const control::Key& key) const {
  return find_in(trials_, Kind::kTrial, key);
}

std::vector<api::Study> StoredObjects::studies() const { return values_of(studies_); }

std::vector<api::TrialPtr> StoredObjects::trials() const { return values_of(trials_); }

std::vector<api::TrialPtr> StoredObjects::trials_of(const control::Key& study) const {
  const auto found = by_study_.find(study);
  if (found == by_study_.end()) return {};
  return values_of(found->second);
}

std::string StoredObjects::unknown_fields() const {
  if (foreign_.empty()) return "";
  std::string names;
  for (const auto& [place, document] : foreign_) {
    if (place.first != Kind::kStudy) continue;
    const Json known = write_object(studies_.at(place.second));
    for (const std::string& path : unknown_paths(document, known, kMostUnknown)) {
      names += (names.empty() ? "" : ", ") + path;
    }
  }
  return names.empty() ? "some of its trials'" : names;
}

template <class Object>
Result<StoredDocument> StoredObjects::document_of(const Object* before, const Object& after) const {
  Json value = write_object(after);
  const auto foreign = foreign_.find(place_of(after));
  if (before != nullptr && foreign != foreign_.end()) {
    value = carry_over(foreign->second, write_object(*before), value);
  }
  std::string text = value.dump();
  FETTLE_TRY(check_readable(after, text, before == nullptr));
  return StoredDocument{std::move(value), std::move(text)};
}

template <class Object>
void StoredObjects::keep(const Object& object, StoredDocument document) {
  const auto foreign = foreign_.find(place_of(object));
  if (foreign != foreign_.end()) foreign->second = std::move(document.value);
  put(object);
}

template Result<StoredDocument> StoredObjects::document_of(const api::Study*,
                                                           const api::Study&) const;
template Result<StoredDocument> StoredObjects::document_of(const api::Trial*,
                                                           const api::Trial&) const;
template void StoredObjects::keep(const api::Study&, StoredDocument);
template void StoredObjects::keep(const api::Trial&, StoredDocument);

}  // namespace fettle::local
