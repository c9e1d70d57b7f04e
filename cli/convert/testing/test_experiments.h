// Experiments for tests: a small one, with fields of spec replaced.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "api/yaml/yaml_reader.h"
#include "cli/convert/katib.h"

namespace fettle::cli {

inline Json yaml(const std::string& text) {
  const api::ReadYaml read = api::read_yaml(text);
  EXPECT_TRUE(read.errors.empty() && read.documents.size() == 1) << text;
  return read.documents.empty() ? Json() : read.documents[0].value();
}

// A random search over one double; `changes` are members of spec, as YAML. null removes one.
inline Json experiment(const std::string& changes = "{}") {
  Json document = yaml(R"(
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: digits, namespace: team}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 8
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.5"}}
  trialTemplate:
    primaryContainerName: train
    trialParameters: [{name: rate, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
            - {name: train, image: x, command: [train, "--lr=${trialParameters.rate}"]}
)");
  const Json changed = yaml(changes);
  for (const auto& [name, value] : changed.as_object()) {
    if (value.is_null()) {
      document.find("spec")->erase(name);
    } else {
      document.find("spec")->set(name, value);
    }
  }
  return document;
}

// The member at a path of maps, as one line of JSON; "" = absent.
inline std::string at(const Json& document, std::initializer_list<std::string_view> path) {
  const Json* found = &document;
  for (const std::string_view name : path) found = found == nullptr ? nullptr : found->find(name);
  return found == nullptr ? "" : found->dump();
}

// The notes as "target: text" lines; a failed conversion as "error: path: message" lines.
inline std::string said(const Conversion& done) {
  std::string out;
  for (const api::FieldError& error : done.errors) {
    out += "error: " + error.path + ": " + error.message + '\n';
  }
  for (const Note& note : done.notes) out += note.target + ": " + note.text + '\n';
  return out;
}

}  // namespace fettle::cli
