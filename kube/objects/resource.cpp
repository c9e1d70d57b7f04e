#include "kube/objects/resource.h"

#include <algorithm>

namespace fettle::kube {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool is_version(std::string_view text) {
  if (text.empty() || text.front() == '0') return false;
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string api_version(const Resource& resource) {
  std::string out(resource.group);
  if (!out.empty()) out += '/';
  return out + std::string(resource.version);
}

std::string path_of(const Resource& resource, std::string_view ns, std::string_view name,
                    std::string_view subresource) {
  std::string out = resource.group.empty() ? "/api/" : "/apis/";
  out += api_version(resource);
  if (!ns.empty()) out += "/namespaces/" + escape(ns);
  out += '/';
  out += resource.plural;
  if (!name.empty()) out += '/' + escape(name);
  if (!subresource.empty()) out += '/' + std::string(subresource);
  return out;
}

std::string describe(const Resource& resource, const ObjectKey& key) {
  std::string out(resource.kind);
  out += ' ';
  if (!key.ns.empty()) out += key.ns + '/';
  return out + key.name;
}

std::string escape(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string query_of(
    std::initializer_list<std::pair<std::string_view, std::string_view>> parameters) {
  std::string out;
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    out += out.empty() ? '?' : '&';
    out += name;
    out += '=' + escape(value);
  }
  return out;
}

bool is_newer(std::string_view version, std::string_view than) {
  if (!is_version(version)) return false;
  if (!is_version(than)) return true;
  return version.size() != than.size() ? version.size() > than.size() : version > than;
}

}  // namespace fettle::kube
