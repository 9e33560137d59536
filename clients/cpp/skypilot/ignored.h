// Collects the fields of a task that mean nothing to Muster's clusters, or may not.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_IGNORED_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_IGNORED_H_

#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/job_file_result.h"
#include "clients/cpp/yaml_reader.h"

namespace muster::client::skypilot {

// Collects such fields of all tasks of a file for one remark; with `strict` each is a problem.
class Ignored {
 public:
  explicit Ignored(bool strict) : strict_(strict) {}

  // Notes a field without effect here. A null is not there.
  void Field(YamlReader& in, const YamlValue& value);
  // Something else that is not quite as the task says; `what` is a sentence.
  void Remark(YamlReader& in, const YamlValue& value, std::string_view what);

  // Notes the kind that the task's cluster is taken to be of; only the broker knows it.
  void Expect(std::string cluster, v1::ClusterKind kind);

  // Returns the expectations since the last call, for the job of this number.
  std::vector<ExpectedKind> TakeExpected(size_t job);
  // Returns the remarks, one of all fields first.
  std::vector<std::string> Notes(std::string_view file) const;

 private:
  const bool strict_;
  std::vector<std::string> fields_;   // each once
  std::vector<std::string> remarks_;  // each once
  std::vector<ExpectedKind> expected_;
};

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_IGNORED_H_
