// Paths of the checkout's files and of its built programs, for tests.
//
// test_paths.cpp is the only translation unit that contains the checkout's path, so a compiler
// cache serves all others to every checkout.
#pragma once

#include <string>
#include <string_view>

namespace fettle {

// A file of the checkout: source_path("crds/trial.yaml").
std::string source_path(std::string_view relative);

// A program of this build: program_path("fettle").
std::string program_path(std::string_view name);

}  // namespace fettle
