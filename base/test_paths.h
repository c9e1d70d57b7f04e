// Where a test finds the checkout's files and the programs that were built with it.
//
// The only translation unit that knows the checkout's place is test_paths.cpp, so that a compiler
// cache serves every other one to every checkout.
#pragma once

#include <string>
#include <string_view>

namespace fettle {

// A file of the checkout: source_path("crds/trial.yaml").
std::string source_path(std::string_view relative);

// A program of this build: program_path("fettle").
std::string program_path(std::string_view name);

}  // namespace fettle
