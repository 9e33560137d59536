#include "agents/kubernetes/checks/preflight.h"

#include <set>
#include <string>
#include <utility>

#include "agents/core/run_files.h"
#include "agents/kubernetes/api/endpoint.h"
#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/cluster/access.h"
#include "agents/kubernetes/cluster/cluster_identity.h"
#include "agents/kubernetes/cluster/queue_view.h"
#include "agents/kubernetes/manifest/pod_security.h"
#include "agents/kubernetes/objects/kueue.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// A page of nodes, of some thirty thousand bytes each.
constexpr int kPageSize = 500;
// v1::ClusterDetails may name as many nodes.
constexpr int kMaxPages = 20;

class Preflight {
 public:
  Preflight(const KubernetesConfig& config, Api* api)
      : config_(WithNamespaces(config, api->endpoint())), api_(*api) {}

  v1::ClusterChecks Run(const std::string& known_identity) {
    const absl::StatusOr<std::string> version = ReadVersion(&api_);
    if (!JudgeServer(api_.endpoint(), version, &checks_)) {
      SkipAll();
      return std::move(checks_).Take();
    }
    JudgeVersion(*version, &checks_);
    JudgeIdentity(ReadIdentity(&api_), known_identity, &checks_);
    checks_.Add(ProjectsLine(config_));
    for (const Right& right : RightsOf(config_)) {
      if (!right.in_namespace) CheckRight(right, "");
    }
    CheckNodes();
    CheckNeeds();
    CheckQueues();
    for (const std::string& name_space : config_.namespaces) CheckNamespace(name_space);
    return std::move(checks_).Take();
  }

 private:
  void SkipAll() {
    constexpr std::pair<v1::CheckCode, const char*> kAll[] = {
        {v1::CHECK_CODE_VERSION, "version"},
        {v1::CHECK_CODE_IDENTITY, "identity"},
        {v1::CHECK_CODE_RIGHTS, "rights"},
        {v1::CHECK_CODE_NODES, "nodes"},
        {v1::CHECK_CODE_GPUS, "GPUs"},
        {v1::CHECK_CODE_IMAGES, "pull secrets"},
        {v1::CHECK_CODE_STORAGE, "storage"},
        {v1::CHECK_CODE_LIMITS, "quotas"},
        {v1::CHECK_CODE_POOL, "queues and gangs"}};
    for (const auto& [code, subject] : kAll)
      checks_.Skip(code, subject, "the API server cannot be asked");
  }

  absl::StatusOr<Json> Get(const std::string& path) { return api_.Get(path, path); }

  static std::string PathOf(const std::string& name_space, const std::string& rest) {
    return fmt::format("/api/v1/namespaces/{}/{}", Escape(name_space), rest);
  }

  // Checks each namespace that runs are in.
  void CheckNamespace(const std::string& name_space) {
    const std::string path = "/api/v1/namespaces/" + Escape(name_space);
    const absl::StatusOr<Json> answer = api_.Get(path, "namespace " + name_space);
    if (!JudgePresence(name_space, answer, &checks_)) return;
    JudgeStandard(name_space, answer, config_, &checks_);
    CheckAccounts(name_space);
    for (const Right& right : RightsOf(config_)) {
      if (right.in_namespace) CheckRight(right, name_space);
    }
    JudgeTrial(name_space, TryJob(name_space), &checks_);
    for (const std::string& name : config_.image_pull_secrets) {
      JudgePullSecret(name, name_space, Get(PathOf(name_space, "secrets/" + Escape(name))),
                      &checks_);
    }
    for (const auto& [root, settings] : config_.storage_roots) {
      if (settings.claim.empty()) continue;
      JudgeClaim(root, settings.claim, name_space,
                 Get(PathOf(name_space, "persistentvolumeclaims/" + Escape(settings.claim))),
                 &checks_);
    }
    JudgeQuotas(name_space, LinesOf(name_space, "resourcequotas", &ParseQuota), &checks_);
    JudgeRanges(name_space, LinesOf(name_space, "limitranges", &ParseLimitRange), &checks_);
    CheckQueuesOf(name_space);
  }

  // Checks the service accounts that lines of the map give to projects there.
  void CheckAccounts(const std::string& name_space) {
    if (config_.projects == nullptr) return;
    const absl::StatusOr<Json> list = Get(PathOf(name_space, "serviceaccounts"));
    std::set<std::string> seen;
    for (const ProjectPlace& place : config_.projects->fixed()) {
      if (place.name_space == name_space && seen.insert(place.service_account).second)
        JudgeAccount(place, list, &checks_);
    }
  }

  void CheckQueues() {
    const absl::StatusOr<Json> apis = Get("/apis");
    JudgeQueues(apis, &checks_);
    if (apis.ok()) groups_ = ParseGroups(*apis);
  }

  void CheckQueuesOf(const std::string& name_space) {
    for (const char* group : {kPodGroupsGroup, kVolcanoGroup}) {
      if (!groups_.contains(group)) continue;
      for (const Right& right : RightsWithPodGroups(group)) CheckRight(right, name_space);
    }
    const auto kueue = groups_.find(kKueueGroup);
    if (kueue == groups_.end()) return;
    for (const Right& right : RightsWithKueue()) CheckRight(right, name_space);
    JudgeLocalQueues(name_space,
                     Get(fmt::format("/apis/{}/{}/namespaces/{}/localqueues", kKueueGroup,
                                     kueue->second, Escape(name_space))),
                     &checks_);
  }

  void CheckRight(const Right& right, const std::string& name_space) {
    std::map<std::string, absl::StatusOr<bool>> allowed;
    for (const std::string& verb : right.verbs) {
      allowed.emplace(verb, IsAllowed({.verb = verb,
                                       .group = right.group,
                                       .resource = right.resource,
                                       .name = right.name,
                                       .name_space = right.in_namespace ? name_space : ""},
                                      &api_));
    }
    JudgeRight(right, name_space, allowed, &checks_);
  }

  // A Job like a run's, which the server looks at and does not make.
  absl::StatusOr<ApiAnswer> TryJob(const std::string& name_space) {
    const std::string image =
        config_.default_image.empty() ? "registry.example/preflight" : config_.default_image;
    const Json resources = {
        {"requests",
         {{"cpu", fmt::format("{}m", config_.default_cpu_millis)},
          {"memory", fmt::format("{}", config_.default_memory_bytes)}}},
        {"limits", {{"memory", fmt::format("{}", config_.default_memory_bytes)}}}};
    Json container = {{"name", "main"}, {"image", image}, {"resources", resources}};
    if (IsRestricted(config_)) container["securityContext"] = LeastContext();
    const Json pod = {{"restartPolicy", "Never"},
                      {"automountServiceAccountToken", false},
                      {"containers", Json::array({container})}};
    return api_.Call(
        {.method = "POST",
         .path = fmt::format("/apis/batch/v1/namespaces/{}/jobs?dryRun=All", Escape(name_space)),
         .body = {{"apiVersion", "batch/v1"},
                  {"kind", "Job"},
                  {"metadata", {{"name", "muster-preflight"}}},
                  {"spec", {{"suspend", true}, {"template", {{"spec", pod}}}}}}});
  }

  absl::StatusOr<std::vector<NodeObject>> ListNodes() {
    std::vector<NodeObject> nodes;
    std::string next;
    for (int page = 0; page < kMaxPages; ++page) {
      const absl::StatusOr<Json> list =
          Get(fmt::format("/api/v1/nodes?limit={}&continue={}", kPageSize, Escape(next)));
      if (!list.ok()) return list.status();
      for (const Json& node : At(*list, "items"))
        nodes.push_back(ParseNode(node, config_.gpu_resources));
      next = TextAt(*list, "metadata/continue");
      if (next.empty()) break;
    }
    return nodes;
  }

  void CheckNodes() {
    const absl::StatusOr<std::vector<NodeObject>> nodes = ListNodes();
    JudgeNodes(nodes, &checks_);
    if (!nodes.ok()) return checks_.Skip(v1::CHECK_CODE_GPUS, "GPUs", "the nodes are not known");
    JudgeGpus(*nodes, config_, &checks_);
  }

  void CheckNeeds() {
    JudgeNames(v1::CHECK_CODE_CONTAINERS, "runtime classes", "none; jobs may name none",
               Get("/apis/node.k8s.io/v1/runtimeclasses"), &checks_);
    if (config_.image_pull_secrets.empty()) {
      checks_.Ok(v1::CHECK_CODE_IMAGES, "pull secrets",
                 "none are set, so that images come from registries that ask for no password; "
                 "kubernetes.image_pull_secrets names some");
    }
    for (const auto& [root, settings] : config_.storage_roots) {
      if (settings.claim.empty()) JudgeHostPath(root, settings.host_path, &checks_);
    }
    for (const auto& [root, directory] : config_.agent_roots)
      JudgeAgentRoot(root, directory, Listed(directory), &checks_);
    JudgeNames(v1::CHECK_CODE_STORAGE, "storage classes", "none",
               Get("/apis/storage.k8s.io/v1/storageclasses"), &checks_);
  }

  static absl::Status Listed(const std::string& directory) {
    const auto files = agents::OpenLocalRunFiles(directory, "");
    return files.ok() ? (*files)->List("").status() : files.status();
  }

  template <typename Line>
  absl::StatusOr<std::vector<Line>> LinesOf(const std::string& name_space,
                                            const std::string& collection,
                                            std::vector<Line> (*parse)(const Json&)) {
    const absl::StatusOr<Json> list = Get(PathOf(name_space, collection));
    if (!list.ok()) return list.status();
    std::vector<Line> lines;
    for (const Json& item : At(*list, "items")) {
      for (Line& line : parse(item)) lines.push_back(std::move(line));
    }
    return lines;
  }

  const KubernetesConfig config_;
  Api& api_;
  agents::CheckList checks_;
  ApiGroups groups_;
};

}  // namespace

v1::ClusterChecks Check(const KubernetesConfig& config, Api* api,
                        const std::string& known_identity) {
  return Preflight(config, api).Run(known_identity);
}

}  // namespace muster::kubernetes
