// fettle-crds DIRECTORY: reads rules/study.yaml and rules/trial.yaml there, and writes studies.yaml
// and trials.yaml beside them: the CustomResourceDefinitions of a cluster that runs Fettle.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "crds/definition_file.h"

namespace fettle::crds {
namespace {

Status write_all(const std::string& directory) {
  for (const DefinitionFile& file : kDefinitionFiles) {
    FETTLE_ASSIGN(const std::string text, generate(file, directory));
    FETTLE_TRY(write_file(directory + '/' + file.name, text));
  }
  return success();
}

}  // namespace
}  // namespace fettle::crds

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fettle-crds DIRECTORY (the one that holds rules/)\n");
    return 2;
  }
  const fettle::Status written = fettle::crds::write_all(argv[1]);
  if (written.ok()) return 0;
  std::fprintf(stderr, "fettle-crds: %s\n", written.error().message.c_str());
  return 1;
}
