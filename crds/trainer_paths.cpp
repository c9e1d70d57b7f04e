#include "crds/trainer_paths.h"

#include "api/fields/field_setter.h"
#include "api/trainer/trainer_fields.h"
#include "crds/schema.h"

namespace fettle::crds {
namespace {

class PathVisitor {
 public:
  PathVisitor(std::string prefix, std::vector<std::string>& out)
      : prefix_(std::move(prefix)), out_(out) {}

  template <class T>
  void field(std::string_view name, T& /*member*/, std::string_view /*description*/,
             const api::FieldRules& /*rules*/ = {}) {
    visit<T>(prefix_ + std::string(name));
  }
  void constant(std::string_view /*name*/, std::string_view /*text*/) {}
  void ignored(std::string_view /*name*/) {}

 private:
  template <class T>
  void visit(const std::string& path) {
    if constexpr (api::HasFields<T>) {
      T value;
      PathVisitor inside(path + '.', out_);
      visit_fields(inside, value);
    } else if constexpr (Entry<T>::kOptional) {  // the path of its value
      visit<typename Entry<T>::Type>(path);
    } else if constexpr (requires { typename Entry<T>::Type; }) {
      visit<typename Entry<T>::Type>(path + "[]");  // a list
    } else {
      out_.push_back(path);
    }
  }

  std::string prefix_;
  std::vector<std::string>& out_;
};

}  // namespace

TrainerPaths trainer_paths() {
  std::vector<std::string> all;
  api::TrainerConfig config;
  PathVisitor visitor("", all);
  visit_fields(visitor, config);
  TrainerPaths paths;
  for (std::string& path : all) {
    const bool in_list = path.find("[]") != std::string::npos;
    (in_list ? paths.in_lists : paths.plain).push_back(std::move(path));
  }
  return paths;
}

}  // namespace fettle::crds
