// StoredObjects: the objects of a store in memory, and how they are written as JSON.
//
// Objects of other versions are read leniently: fields that this one does not know decide nothing
// and stay as they are (stored_json.h), and values that another version accepted are not checked
// again. An object that could not be read back has no document, so it is never stored. Performs no
// IO. Not synchronised.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "core/control/store.h"

namespace fettle::local {

// An object as it is stored.
struct StoredDocument {
  Json value;
  std::string text;
};

control::Change change_of(const api::Study& study);
control::Change change_of(const api::Trial& trial);

// For errors: "trial s-3".
std::string describe(control::Kind kind, const std::string& name);

class StoredObjects {
 public:
  // Adds an object as it was stored. kInvalid: it cannot be read.
  Status load(control::Kind kind, const std::string& text);

  // kNotFound.
  Result<api::Study> study(const control::Key& key) const;
  Result<api::TrialPtr> trial(const control::Key& key) const;
  // Sorted by key.
  std::vector<api::Study> studies() const;
  std::vector<api::TrialPtr> trials() const;
  // Sorted by spec.index.
  std::vector<api::TrialPtr> trials_of(const control::Key& study) const;

  // The highest resourceVersion given out.
  std::int64_t version() const { return version_; }
  std::int64_t count() const { return std::ssize(studies_) + std::ssize(trials_); }
  // Names the fields of another version, for a warning; "" = no object has any.
  std::string unknown_fields() const;

  // Returns `after` as it is to be stored, with the fields of another version. `before`: the object
  // until now; nullptr: it is new. kInvalid: it could not be read back.
  template <class Object>
  Result<StoredDocument> document_of(const Object* before, const Object& after) const;
  // Keeps an object that has been stored as `document`.
  template <class Object>
  void keep(const Object& object, StoredDocument document);

 private:
  template <class Object>
  Status load_object(Json document);
  void put(api::Study study);
  void put(api::Trial trial);

  std::int64_t version_ = 0;
  std::map<control::Key, api::Study> studies_;
  std::map<control::Key, api::TrialPtr> trials_;
  std::map<control::Key, std::map<std::int64_t, api::TrialPtr>> by_study_;  // by spec.index
  // Documents with fields that are unknown here, as they are stored.
  std::map<std::pair<control::Kind, control::Key>, Json> foreign_;
};

}  // namespace fettle::local
