// The variables that a trial inherits from the environment of `fettle run`: a fixed list and the
// names in spec.trial.passEnvironment. The supervisor alone reads their values, so no file and no
// message holds them. Reads the environment of this process; call it while no thread changes that.
#pragma once

#include <string>
#include <vector>

namespace fettle::local {

// "NAME=value" of each variable of this process that trials see; `passed` are names besides the
// fixed list.
std::vector<std::string> inherited_environment(const std::vector<std::string>& passed);

// Sets a variable in an environment of NAME=value entries, replacing its old value.
void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value);

}  // namespace fettle::local
