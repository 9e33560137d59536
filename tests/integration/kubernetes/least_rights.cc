#include "tests/integration/kubernetes/least_rights.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>

#include "absl/strings/escaping.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

constexpr char kManifests[] = MUSTER_SOURCE_DIR "/deploy/kubernetes/";

Json ToJson(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& field : node) object[field.first.Scalar()] = ToJson(field.second);
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node) list.push_back(ToJson(item));
    return list;
  }
  if (!node.IsScalar()) return nullptr;
  // These files have no numbers.
  const bool is_plain = node.Tag() == "?";
  if (is_plain && (node.Scalar() == "true" || node.Scalar() == "false"))
    return node.Scalar() == "true";
  return node.Scalar();
}

std::string CollectionOf(const std::string& kind, const std::string& name_space) {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/";
  const std::string here = "namespaces/" + name_space;
  const std::map<std::string, std::string> collections = {
      {"Namespace", "/api/v1/namespaces"},
      {"ServiceAccount", "/api/v1/" + here + "/serviceaccounts"},
      {"Role", rbac + here + "/roles"},
      {"RoleBinding", rbac + here + "/rolebindings"},
      {"ClusterRole", rbac + "clusterroles"},
      {"ClusterRoleBinding", rbac + "clusterrolebindings"}};
  const auto found = collections.find(kind);
  EXPECT_NE(found, collections.end()) << kind;
  return found == collections.end() ? "" : found->second;
}

// Makes what is not there yet.
void Apply(TestCluster& cluster, const std::string& file, const std::string& name_space) {
  for (const YAML::Node& node : YAML::LoadAllFromFile(kManifests + file)) {
    const Json object = ToJson(node);
    const std::string own = TextAt(object, "metadata/namespace");
    const std::string path = CollectionOf(TextAt(object, "kind"), own.empty() ? name_space : own);
    const ApiAnswer answer = cluster.Admin("POST", path, object);
    EXPECT_TRUE(answer.ok() || answer.status == 409) << RefusalOf(answer, file);
  }
}

}  // namespace

std::string LeastRightsToken(TestCluster& cluster, const std::string& name_space,
                             bool cluster_rights) {
  Apply(cluster, "account.yaml", name_space);
  Apply(cluster, "rights.yaml", name_space);
  if (cluster_rights) Apply(cluster, "cluster-rights.yaml", name_space);
  const Json answer =
      cluster.MustDo("POST", "/api/v1/namespaces/muster/serviceaccounts/muster-agent/token",
                     {{"spec", {{"expirationSeconds", 36000}}}});
  return TextAt(answer, "status/token");
}

std::string LeastRightsKubeconfig(TestCluster& cluster, const std::string& name_space,
                                  bool cluster_rights) {
  const Endpoint admin = cluster.endpoint();
  const Json config = {
      {"current-context", "agent"},
      {"clusters",
       {{{"name", "test"},
         {"cluster",
          {{"server", admin.server},
           {"certificate-authority-data", absl::Base64Escape(admin.ca_pem)}}}}}},
      {"users",
       {{{"name", "agent"},
         {"user", {{"token", LeastRightsToken(cluster, name_space, cluster_rights)}}}}}},
      {"contexts",
       {{{"name", "agent"},
         {"context", {{"cluster", "test"}, {"user", "agent"}, {"namespace", name_space}}}}}}};
  const std::string path = fmt::format("{}/kubeconfig-{}", cluster.directory(), name_space);
  // JSON is YAML.
  std::ofstream(path) << config.dump();
  return path;
}

}  // namespace muster::kubernetes
