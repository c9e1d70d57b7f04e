#include "api/yaml/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "api/yaml/yaml_tree.h"
#include "base/utf8.h"

namespace fettle::api {
namespace {

constexpr std::size_t kMaxDuplicates = 20;  // reported for each document

LineColumn place_of(const YAML::Mark& mark) {
  return mark.is_null() ? LineColumn{} : LineColumn{mark.line + 1, mark.column + 1};
}

// A construct that yaml-cpp accepts and this reader does not.
struct Refusal {
  LineColumn place;
  std::string message;
};

[[noreturn]] void refuse(const YAML::Mark& mark, std::string message) {
  throw Refusal{place_of(mark), std::move(message)};
}

// Builds one document's tree from yaml-cpp's events. Throws Refusal.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<YamlError>& errors) : errors_(errors) {}

  std::shared_ptr<const YamlNode> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {
    if (!complex_key_) return;
    errors_.push_back({*complex_key_, "found a list or map as a field name; expected a text"});
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_scalar(mark, anchor, Json(), "null", /*merge=*/false);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {  // a list or map has its anchor from its end on
      // Throws.
      refuse(mark, "found an alias inside what it stands for; expected one of something complete");
    }
    if (wants_key()) {
      if (found->second->kind != YamlNode::Kind::kScalar || !found->second->scalar.is_string()) {
        refuse(mark, "found an alias as a field name that is no text");
      }
      return set_key(mark, found->second->scalar.as_string(), /*merge=*/false);
    }
    attach(mark, found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    // yaml-cpp gives plain scalars without a tag "?" and quoted ones "!".
    const bool plain = tag == "?";
    const bool typed = tag == "tag:yaml.org,2002:int" || tag == "tag:yaml.org,2002:float" ||
                       tag == "tag:yaml.org,2002:bool" || tag == "tag:yaml.org,2002:null";
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!plain && !typed && !quoted) refuse(mark, "found the tag " + tag + ", which is not known");
    if (quoted) return add_scalar(mark, anchor, Json(text), text, /*merge=*/false);
    // A tagged text is resolved like a plain one.
    Result<Json> value = resolve_plain_scalar(text);
    if (!value) errors_.push_back({place_of(mark), value.error().message});
    const bool surprising = plain && value && is_surprising(text, *value);
    add_scalar(mark, anchor, value ? *value : Json(), text, plain && text == "<<", surprising);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map whose end has not come yet.
  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    bool has_key = false;  // maps: the next node is the value of `key`
    bool key_is_twice = false;
    YamlEntry key;
    std::set<std::string> keys;
  };

  bool wants_key() const {
    return !open_.empty() && open_.back().node->kind == YamlNode::Kind::kMap &&
           !open_.back().has_key;
  }

  void add_scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Json value,
                  const std::string& text, bool merge, bool surprising = false) {
    auto node = std::make_shared<YamlNode>();
    node->place = place_of(mark);
    node->scalar = std::move(value);
    if (surprising) node->surprising = text;
    if (anchor != 0) anchors_[anchor] = node;
    if (wants_key()) return set_key(mark, text, merge);
    attach(mark, node);
  }

  void set_key(const YAML::Mark& mark, const std::string& text, bool merge) {
    Open& map = open_.back();
    map.key = YamlEntry{text, merge, place_of(mark), nullptr};
    map.has_key = true;
    map.key_is_twice = !map.keys.insert(text).second;
    if (map.key_is_twice && ++duplicates_ <= kMaxDuplicates) {
      errors_.push_back({map.key.place, "found the field " + Json(text.substr(0, 64)).dump() +
                                            " a second time in one map; remove one of them"});
    }
  }

  void attach(const YAML::Mark& mark, std::shared_ptr<const YamlNode> node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    if (wants_key()) {
      // Not at once: in an unfinished document it may only look like a complex key.
      if (!complex_key_) complex_key_ = place_of(mark);
      return set_key(mark, {}, /*merge=*/false);
    }
    Open& parent = open_.back();
    if (parent.node->kind == YamlNode::Kind::kList) {
      parent.node->entries.push_back({{}, false, place_of(mark), std::move(node)});  // no key
      return;
    }
    parent.key.value = std::move(node);
    if (!parent.key_is_twice) parent.node->entries.push_back(std::move(parent.key));
    parent.has_key = false;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    const bool known = tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:map" ||
                       tag == "tag:yaml.org,2002:seq";
    if (!known) refuse(mark, "found the tag " + tag + ", which is not known");
    if (open_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
      refuse(mark, "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
    }
    Open next;
    next.node = std::make_shared<YamlNode>();
    next.node->kind = kind;
    next.node->place = place_of(mark);
    next.anchor = anchor;
    next.mark = mark;
    open_.push_back(std::move(next));
  }

  void close() {
    const Open ended = std::move(open_.back());
    open_.pop_back();
    if (ended.anchor != 0) anchors_[ended.anchor] = ended.node;
    attach(ended.mark, ended.node);
  }

  std::vector<YamlError>& errors_;
  std::shared_ptr<const YamlNode> root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::shared_ptr<const YamlNode>> anchors_;
  std::size_t duplicates_ = 0;
  std::optional<LineColumn> complex_key_;
};

std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool has_tab_in_indentation(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return line.substr(0, first).find('\t') != std::string_view::npos;
}

// Rewords yaml-cpp's error, with its place, and with the usual cause if that is obvious.
YamlError explain(const YAML::Exception& exception, std::string_view text) {
  const LineColumn place = place_of(exception.mark);
  // yaml-cpp may notice a wrong indentation a line early or late.
  for (const int line : {place.line, place.line - 1, place.line + 1}) {
    const std::string_view content = line > 0 ? line_of(text, line) : std::string_view();
    if (!has_tab_in_indentation(content)) continue;
    const auto column = static_cast<int>(content.find('\t')) + 1;
    return {{line, column}, "found a tab in the indentation; YAML wants spaces there"};
  }
  return {place, exception.msg.empty() ? "is not YAML" : "is not YAML: " + exception.msg};
}

}  // namespace

YamlDocument::YamlDocument(std::shared_ptr<const YamlNode> root, Json value)
    : root_(std::move(root)), value_(std::move(value)) {}

LineColumn YamlDocument::find(std::string_view path) const { return find_place(*root_, path); }

std::string YamlDocument::surprising_at(std::string_view path) const {
  const YamlNode* node = find_node(*root_, path);
  return node == nullptr ? "" : node->surprising;
}

std::optional<YamlError> find_foreign_byte(std::string_view text) {
  LineColumn place{1, 1};
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    const bool control =
        (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F;
    if (length == 0 || control) {
      return YamlError{place, std::string("found a byte that is ") +
                                  (control ? "a control character" : "not UTF-8") +
                                  "; expected a YAML file, which is text in UTF-8"};
    }
    text.remove_prefix(length);
    place = byte == '\n' ? LineColumn{place.line + 1, 1} : LineColumn{place.line, place.column + 1};
  }
  return std::nullopt;
}

ReadYaml read_yaml(std::string_view text) {
  ReadYaml out;
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    for (;;) {
      TreeBuilder builder(out.errors);
      if (!parser.HandleNextDocument(builder)) break;
      const std::shared_ptr<const YamlNode> root = builder.root();
      if (root == nullptr) continue;
      Json value = expand(*root, out.errors);
      // Null: the document is empty.
      if (!value.is_null()) out.documents.emplace_back(root, std::move(value));
    }
  } catch (const Refusal& refusal) {
    out.errors.push_back({refusal.place, refusal.message});
  } catch (const YAML::Exception& exception) {
    out.errors.push_back(explain(exception, text));
  } catch (const std::exception& exception) {
    out.errors.push_back({{}, std::string("is not YAML: ") + exception.what()});
  }
  return out;
}

}  // namespace fettle::api
