// $(VAR) in a container's command, args and env, expanded exactly as Kubernetes does it
// (k8s.io/kubernetes/third_party/forked/golang/expansion): `$(NAME)` becomes the value if NAME is
// known and stays as it is otherwise; `$$` becomes `$`, so `$$(NAME)` stays `$(NAME)`; a value is
// never expanded again. No shell is involved at any point. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fettle::local {

std::string expand(std::string_view text, const std::map<std::string, std::string>& variables);

}  // namespace fettle::local
