#include "api/fields/field_setter.h"

#include <charconv>

#include "api/fields/nearest.h"

namespace fettle::api {

PathHead split_path(std::string_view path) {
  if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  const std::size_t end = std::min(path.find_first_of(".["), path.size());
  return {path.substr(0, end), path.substr(end)};
}

std::optional<IndexHead> split_index(std::string_view path) {
  if (path.empty() || path.front() != '[') return std::nullopt;
  const std::size_t close = path.find(']');
  if (close == path.npos) return std::nullopt;
  IndexHead head;
  const char* const end = path.data() + close;
  const auto [stopped, error] = std::from_chars(path.data() + 1, end, head.index);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  head.rest = path.substr(close + 1);
  return head;
}

void refuse_whole(const SetContext& context) {
  context.errors.add(context.path, "holds fields of its own; name one of them");
}

void refuse_deeper(const SetContext& context) {
  context.errors.add(context.path, "is a plain value and has no field " +
                                       std::string(split_path(context.rest).name));
}

void refuse_index(const SetContext& context, std::size_t entries) {
  const std::string path = context.path.str();
  context.errors.add(path, entries == 0 ? std::string("is a list without entries")
                                        : "is a list of " + std::to_string(entries) +
                                              "; name one as " + path + "[0] to " + path + '[' +
                                              std::to_string(entries - 1) + ']');
}

bool FieldSetter::reaches(std::string_view name, const FieldRules& rules) {
  known_.push_back(name);
  if (name != head_.name) return false;
  found_ = true;
  if (rules.applies) return true;
  context_.errors.add(context_.path.member(name),
                      "only makes sense with " + std::string(rules.applies_to));
  return false;
}

void FieldSetter::finish() {
  if (found_) return;
  std::string hint = did_you_mean(head_.name, known_);
  if (hint.empty()) hint = "; known there: " + join_names(known_, "and");
  context_.errors.add(context_.path.member(head_.name), "there is no such field" + hint);
}

}  // namespace fettle::api
