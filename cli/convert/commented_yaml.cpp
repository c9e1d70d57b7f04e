#include "cli/convert/commented_yaml.h"

#include <algorithm>
#include <string_view>

#include "api/yaml/yaml_text.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

constexpr int kColumns = 100;

std::string margin(int indent) { return std::string(static_cast<std::size_t>(indent), ' '); }

bool is_container(const Json& value) {
  return (value.is_object() && !value.as_object().empty()) ||
         (value.is_array() && !value.as_array().empty());
}

bool is_scalar_list(const Json& value) {
  return value.is_array() && std::ranges::none_of(value.as_array(), is_container);
}

// Fields of scalars, and of lists of scalars: one line, if there is room for it.
bool is_flat(const Json& value) {
  if (!value.is_object()) return false;
  return std::ranges::all_of(value.as_object(), [](const auto& member) {
    return !is_container(member.second) || is_scalar_list(member.second);
  });
}

std::string member_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + '.' + name;
}
std::string item_path(const std::string& path, std::size_t index) {
  return path + '[' + std::to_string(index) + ']';
}

// Whether `path` is `outer`, or lies inside it.
bool is_under(std::string_view path, std::string_view outer) {
  if (outer.empty()) return true;
  if (!path.starts_with(outer)) return false;
  return path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[';
}

class Writer {
 public:
  explicit Writer(const std::vector<Note>& notes) : notes_(notes), written_(notes.size(), false) {}

  void fields(const Json& map, const std::string& path, int indent) {
    for (const auto& [name, value] : map.as_object()) {
      const std::string inner = member_path(path, name);
      const std::string key = margin(indent) + api::to_flow_yaml(Json(name)) + ':';
      entry(key, value, inner, indent, indent + 2);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  // `head` is the key or the dash; `below` the indent of what follows in block style.
  void entry(const std::string& head, const Json& value, const std::string& path, int indent,
             int below) {
    const std::string line = head + ' ' + api::to_flow_yaml(value);
    const bool one_line = !is_container(value) || is_scalar_list(value) || is_flat(value);
    const bool fits = display_width(line) <= kColumns;
    if (!is_container(value) || (one_line && fits)) {
      comments(path, true, value, indent);
      out_ += line + '\n';
      return;
    }
    comments(path, false, value, indent);
    if (value.is_object()) {
      map_entry(head, value, path, below);
    } else {
      out_ += head + '\n';
      items(value, path, head.ends_with('-') ? below : indent);
    }
  }

  void map_entry(const std::string& head, const Json& map, const std::string& path, int below) {
    if (!head.ends_with('-')) {
      out_ += head + '\n';
      return fields(map, path, below);
    }
    // The first field of a list's item stands beside the dash, unless a comment comes before it.
    const std::size_t begin = out_.size();
    fields(map, path, below);
    const std::size_t dash = begin + static_cast<std::size_t>(below) - 2;
    if (out_[dash + 2] == '#') {
      out_.insert(begin, head + '\n');
    } else {
      out_[dash] = '-';
    }
  }

  // Items of a map's list stand at their key's own indent: the dashes set them apart.
  void items(const Json& list, const std::string& path, int indent) {
    for (std::size_t i = 0; i < list.as_array().size(); ++i) {
      entry(margin(indent) + '-', list.as_array()[i], item_path(path, i), indent, indent + 2);
    }
  }

  // Writes the notes about `path`; `whole`: also notes about anything inside it.
  void comments(const std::string& path, bool whole, const Json& value, int indent) {
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      const std::string& target = notes_[i].target;
      if (written_[i] || !is_under(target, path)) continue;
      if (!whole && target != path && leads_on(value, path, target)) continue;
      written_[i] = true;
      out_ += comment_lines("note: " + notes_[i].text, indent);
    }
  }

  // Whether the target lies in a member or item of the value that exists.
  static bool leads_on(const Json& value, const std::string& path, const std::string& target) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        if (is_under(target, item_path(path, i))) return true;
      }
    }
    if (!value.is_object()) return false;
    return std::ranges::any_of(value.as_object(), [&](const auto& member) {
      return is_under(target, member_path(path, member.first));
    });
  }

  const std::vector<Note>& notes_;
  std::vector<bool> written_;
  std::string out_;
};

}  // namespace

std::string comment_lines(const std::string& text, int indent) {
  const std::string head = margin(indent) + '#';
  std::string out;
  std::string line = head;
  std::string_view rest = text;
  const std::string clean = printable(rest);
  rest = clean;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string word(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line != head && display_width(line) + 1 + display_width(word) > kColumns) {
      out += line + '\n';
      line = head;
    }
    line += ' ' + word;
  }
  return out + line + '\n';
}

std::string commented_yaml(const Json& document, const std::vector<Note>& notes) {
  std::string out;
  std::vector<Note> others;
  for (const Note& note : notes) {
    // About the document as a whole.
    if (note.target.empty()) out += comment_lines("note: " + note.text, 0);
    if (!note.target.empty()) others.push_back(note);
  }
  Writer writer(others);
  writer.fields(document, "", 0);
  return out + writer.take();
}

}  // namespace fettle::cli
