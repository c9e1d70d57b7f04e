#include "api/yaml/yaml_tree.h"

#include <algorithm>

#include "api/fields/field_setter.h"

namespace fettle::api {
namespace {

constexpr std::size_t kBytesPerValue = 32;

class Expansion {
 public:
  explicit Expansion(std::vector<YamlError>& errors) : errors_(errors) {}

  Json run(const YamlNode& node, int depth) {
    spent_ += kBytesPerValue + (node.scalar.is_string() ? node.scalar.as_string().size() : 0);
    if (spent_ > kMaxExpandedBytes) {
      return give_up(node, "the aliases expand to more than " +
                               std::to_string(kMaxExpandedBytes / 1'000'000) +
                               " MB; write out less, or use fewer aliases of aliases");
    }
    if (depth > kMaxYamlDepth) {
      return give_up(node, "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
    }
    switch (node.kind) {
      case YamlNode::Kind::kScalar:
        return node.scalar;
      case YamlNode::Kind::kList:
        return expand_list(node, depth);
      case YamlNode::Kind::kMap:
        return expand_map(node, depth);
    }
    return Json();
  }

 private:
  Json expand_list(const YamlNode& node, int depth) {
    Json out = Json::array();
    for (const YamlEntry& entry : node.entries) {
      if (given_up_) return out;
      out.push_back(run(*entry.value, depth + 1));
    }
    return out;
  }

  Json expand_map(const YamlNode& node, int depth) {
    Json out = Json::object();
    for (const YamlEntry& entry : node.entries) {
      if (given_up_) return out;
      // Keys differ (the reader ensures that), so this needs no look-up.
      if (!entry.merge) {
        spent_ += entry.key.size();
        out.as_object().emplace_back(entry.key, run(*entry.value, depth + 1));
      }
    }
    // Merges last, because a merge sets only absent keys.
    for (const YamlEntry& entry : node.entries) {
      if (entry.merge) merge(entry, depth, out);
    }
    return out;
  }

  // A written key wins over a merged one, an earlier merge over a later one.
  void merge(const YamlEntry& entry, int depth, Json& out) {
    const YamlNode& source = *entry.value;
    if (source.kind == YamlNode::Kind::kList) {
      for (const YamlEntry& item : source.entries) merge_map(*item.value, entry, depth, out);
    } else {
      merge_map(source, entry, depth, out);
    }
  }

  void merge_map(const YamlNode& source, const YamlEntry& entry, int depth, Json& out) {
    if (given_up_) return;
    if (source.kind != YamlNode::Kind::kMap) {
      errors_.push_back({entry.place,
                         "found << with something that is no map; expected an alias "
                         "of a map, such as <<: *defaults"});
      return;
    }
    const Json merged = run(source, depth);
    if (!merged.is_object()) return;
    for (const auto& [key, value] : merged.as_object()) {
      if (out.find(key) == nullptr) out.set(key, value);
    }
  }

  Json give_up(const YamlNode& node, std::string message) {
    if (!given_up_) errors_.push_back({node.place, std::move(message)});
    given_up_ = true;
    return Json();
  }

  std::vector<YamlError>& errors_;
  std::size_t spent_ = 0;
  bool given_up_ = false;
};

// Returns the entry of a map with which `path` begins; keys may hold dots, so the longest wins.
// Cuts the path. Searches merged maps if the map itself has no such key.
const YamlEntry* take_entry(const YamlNode& map, std::string_view& path) {
  const std::string_view rest = !path.empty() && path.front() == '.' ? path.substr(1) : path;
  const YamlEntry* best = nullptr;
  for (const YamlEntry& entry : map.entries) {
    if (entry.merge || rest.substr(0, entry.key.size()) != entry.key) continue;
    const bool whole = rest.size() == entry.key.size() || rest[entry.key.size()] == '.' ||
                       rest[entry.key.size()] == '[';
    if (whole && (best == nullptr || entry.key.size() > best->key.size())) best = &entry;
  }
  if (best != nullptr) {
    path = rest.substr(best->key.size());
    return best;
  }
  for (const YamlEntry& entry : map.entries) {
    if (!entry.merge || entry.value->kind != YamlNode::Kind::kMap) continue;
    // `path` is uncut as long as nothing is found.
    if (const YamlEntry* merged = take_entry(*entry.value, path)) return merged;
  }
  return nullptr;
}

const YamlEntry* take_item(const YamlNode& list, std::string_view& path) {
  const auto head = split_index(path);
  if (!head || head->index >= list.entries.size()) return nullptr;
  path = head->rest;
  return &list.entries[head->index];
}

}  // namespace

Json expand(const YamlNode& root, std::vector<YamlError>& errors) {
  return Expansion(errors).run(root, 0);
}

const YamlNode* find_node(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  while (!path.empty()) {
    const YamlEntry* entry = nullptr;
    if (node->kind == YamlNode::Kind::kMap) entry = take_entry(*node, path);
    if (node->kind == YamlNode::Kind::kList) entry = take_item(*node, path);
    if (entry == nullptr) return nullptr;
    node = entry->value.get();
  }
  return node;
}

LineColumn find_place(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  LineColumn place = root.place;  // of the innermost node found; take_*() shorten `path`
  while (!path.empty() && node->kind != YamlNode::Kind::kScalar) {
    const YamlEntry* entry =
        node->kind == YamlNode::Kind::kMap ? take_entry(*node, path) : take_item(*node, path);
    if (entry == nullptr) break;
    place = entry->place;
    node = entry->value.get();
  }
  return place;
}

}  // namespace fettle::api
