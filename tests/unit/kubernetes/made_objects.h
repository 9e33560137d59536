// A run, the cluster's configuration and the objects that become of both, for tests of manifests.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_MADE_OBJECTS_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_MADE_OBJECTS_H_

#include <string>

#include "absl/strings/escaping.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {

inline agent::v1::Assignment MakeAssignment(uint32_t nodes = 1) {
  agent::v1::Assignment assignment;
  assignment.set_run_key("k7m2-42-1");
  assignment.set_job_id(42);
  assignment.set_run(1);
  assignment.set_user("ann@lab");
  v1::JobSpec* spec = assignment.mutable_spec();
  spec->set_name("train it");
  spec->set_project("vision");
  spec->set_nodes(nodes);
  spec->set_image("nvcr.io/nvidia/tao:5.0");
  spec->mutable_command()->mutable_argv()->add_args("true");
  return assignment;
}

inline KubernetesConfig MakeConfig() {
  KubernetesConfig config;
  config.cluster = "lab";
  config.storage_roots["data"] = {.claim = "data-claim", .host_path = "", .mount = "/lustre"};
  config.storage_roots["home"] = {.claim = "", .host_path = "/srv/home", .mount = "/home"};
  return config;
}

inline KubernetesConfig WithoutRoots() {
  KubernetesConfig config;
  config.cluster = "lab";
  return config;
}

inline RunObjects Make(const agent::v1::Assignment& assignment,
                       const KubernetesConfig& config = MakeConfig()) {
  absl::StatusOr<RunObjects> objects = MakeObjects(assignment, config, "runs");
  EXPECT_TRUE(objects.ok()) << objects.status();
  return objects.ok() ? *std::move(objects) : RunObjects{};
}

inline Json PodOf(const RunObjects& objects) { return At(objects.job, "spec/template/spec"); }
inline Json MainOf(const RunObjects& objects) { return PodOf(objects).at("containers").at(0); }

// Returns "FIELD: why" of the error.
inline std::string RefusalOf(const agent::v1::Assignment& assignment,
                             const KubernetesConfig& config = MakeConfig()) {
  const absl::Status status = MakeObjects(assignment, config, "runs").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto bad = contract::GetBadRequest(status);
  if (!bad.has_value()) return std::string(ToStd(status.message()));
  return bad->field_violations(0).field() + ": " + bad->field_violations(0).description();
}

inline std::string FileOf(const RunObjects& objects, const std::string& name) {
  std::string content;
  EXPECT_TRUE(absl::Base64Unescape(TextAt(objects.secret.at("data"), name.c_str()), &content));
  return content;
}

inline Json FindByName(const Json& list, const std::string& key, const std::string& value) {
  for (const Json& item : list) {
    if (item.value(key, "") == value) return item;
  }
  return nullptr;
}

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_MADE_OBJECTS_H_
