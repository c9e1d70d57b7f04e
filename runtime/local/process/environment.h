// What a trial inherits from the environment of `fettle run`: the variables that are named here and
// those of spec.trial.passEnvironment. The supervisor alone reads their values, so no file and no
// message holds them. Reads the environment of this process; call it where no thread changes that.
#pragma once

#include <string>
#include <vector>

namespace fettle::local {

// "NAME=value" of each variable of this process that trials see; `passed` are names in addition to
// those that always pass.
std::vector<std::string> inherited_environment(const std::vector<std::string>& passed);

// Sets a variable of an environment of NAME=value entries, in place of what it was.
void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value);

}  // namespace fettle::local
