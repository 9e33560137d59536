#include "agents/kubernetes/api/kubeconfig.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "daemon/read_file.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

// A file of several hundred clusters fits; more is no kubeconfig.
constexpr size_t kMaxKubeconfigBytes = 4 << 20;
// A bundle of all authorities of a system is a quarter of this.
constexpr size_t kMaxPemBytes = 1 << 20;

// Holds one named entry of a file: a cluster, a user or a context.
struct Entry {
  YAML::Node node;
  std::string file;
};

struct Merged {
  std::map<std::string, Entry> clusters;
  std::map<std::string, Entry> users;
  std::map<std::string, Entry> contexts;
  std::string current_context;
};

absl::Status Bad(const std::string& file, const std::string& words) {
  return absl::InvalidArgumentError(fmt::format("kubeconfig \"{}\": {}", file, words));
}

std::string Text(const YAML::Node& node, const char* key) {
  const YAML::Node value = node.IsMap() ? node[key] : YAML::Node();
  return value && value.IsScalar() ? value.Scalar() : std::string();
}

bool Flag(const YAML::Node& node, const char* key) { return Text(node, key) == "true"; }

absl::Status MergeList(const YAML::Node& root, const char* list, const char* inner,
                       const std::string& file, std::map<std::string, Entry>* entries) {
  const YAML::Node nodes = root[list];
  if (!nodes || nodes.IsNull()) return absl::OkStatus();
  if (!nodes.IsSequence()) return Bad(file, fmt::format("\"{}\" is no list", list));
  for (const YAML::Node& node : nodes) {
    const std::string name = Text(node, "name");
    if (name.empty()) return Bad(file, fmt::format("an entry of \"{}\" has no name", list));
    if (!node[inner] || !node[inner].IsMap())
      return Bad(file, fmt::format("\"{}\" of {} has no \"{}\"", name, list, inner));
    entries->emplace(name, Entry{node[inner], file});
  }
  return absl::OkStatus();
}

absl::Status MergeText(const std::string& text, const std::string& file, Merged* merged) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root || root.IsNull()) return absl::OkStatus();
    if (!root.IsMap()) return Bad(file, "is no kubeconfig: it has no fields");
    if (merged->current_context.empty()) merged->current_context = Text(root, "current-context");
    for (const absl::Status& status :
         {MergeList(root, "clusters", "cluster", file, &merged->clusters),
          MergeList(root, "users", "user", file, &merged->users),
          MergeList(root, "contexts", "context", file, &merged->contexts)}) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  } catch (const YAML::Exception& error) {
    return Bad(file, fmt::format("is no YAML: {}", error.what()));
  }
}

absl::StatusOr<Merged> Merge(const std::vector<std::string>& files) {
  Merged merged;
  bool any = false;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = ReadFile(file, kMaxKubeconfigBytes);
    if (absl::IsNotFound(text.status()) && files.size() > 1) continue;
    if (!text.ok()) return text.status();
    any = true;
    if (absl::Status status = MergeText(*text, file, &merged); !status.ok()) return status;
  }
  if (any) return merged;
  return absl::NotFoundError(
      fmt::format("none of the kubeconfig files is there: {}; set kubernetes.kubeconfig, or "
                  "$KUBECONFIG",
                  fmt::join(files, ", ")));
}

// Paths are those of the file that names them.
std::string Resolve(const std::string& file, const std::string& path) {
  const std::filesystem::path absolute =
      std::filesystem::absolute(std::filesystem::path(file)).parent_path();
  return (absolute / path).lexically_normal().string();
}

// Returns the text of KEY-data, or else of the file that KEY names; empty if neither is set.
absl::StatusOr<std::string> Pem(const Entry& entry, const char* key) {
  const std::string data_key = fmt::format("{}-data", key);
  if (const std::string data = Text(entry.node, data_key.c_str()); !data.empty()) {
    std::string pem;
    if (!absl::Base64Unescape(data, &pem))
      return Bad(entry.file, fmt::format("{} is no base64", data_key));
    return pem;
  }
  const std::string path = Text(entry.node, key);
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> pem = ReadFile(Resolve(entry.file, path), kMaxPemBytes);
  if (!pem.ok())
    return Bad(entry.file, fmt::format("{}: {}", key, std::string(pem.status().message())));
  return pem;
}

absl::StatusOr<ExecPlugin> ReadExec(const YAML::Node& node, const std::string& file) {
  ExecPlugin plugin;
  plugin.api_version = Text(node, "apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Bad(file, fmt::format("exec.apiVersion \"{}\" is none of "
                                 "client.authentication.k8s.io/v1 and /v1beta1",
                                 plugin.api_version));
  }
  plugin.command = Text(node, "command");
  if (plugin.command.empty()) return Bad(file, "exec.command is missing");
  if (plugin.command.find('/') != std::string::npos) plugin.command = Resolve(file, plugin.command);
  for (const YAML::Node& argument : node["args"]) plugin.args.push_back(argument.Scalar());
  for (const YAML::Node& variable : node["env"])
    plugin.env[Text(variable, "name")] = Text(variable, "value");
  if (Text(node, "interactiveMode") == "Always") {
    return Bad(file, fmt::format("exec.interactiveMode: {} asks at a terminal, and an agent has "
                                 "none; use one that needs nobody, or a token",
                                 plugin.command));
  }
  plugin.install_hint = Text(node, "installHint");
  plugin.wants_cluster = Flag(node, "provideClusterInfo");
  return plugin;
}

absl::Status ReadUser(const Entry& entry, Identity* identity) {
  for (const auto& [key, pem, file] :
       {std::tuple("client-certificate", &identity->certificate_pem, &identity->certificate_file),
        std::tuple("client-key", &identity->key_pem, &identity->key_file)}) {
    absl::StatusOr<std::string> text = Pem(entry, key);
    if (!text.ok()) return text.status();
    *pem = *std::move(text);
    const bool is_inline = !Text(entry.node, fmt::format("{}-data", key).c_str()).empty();
    if (const std::string path = Text(entry.node, key); !is_inline && !path.empty())
      *file = Resolve(entry.file, path);
  }
  if (identity->certificate_pem.empty() != identity->key_pem.empty())
    return Bad(entry.file, "client-certificate and client-key go together; one is missing");
  identity->token = Text(entry.node, "token");
  if (const std::string path = Text(entry.node, "tokenFile"); !path.empty())
    identity->token_file = Resolve(entry.file, path);
  identity->user = Text(entry.node, "username");
  identity->password = Text(entry.node, "password");
  if (entry.node["auth-provider"])
    return Bad(entry.file, "auth-provider is gone from Kubernetes since 1.26; use exec");
  if (!entry.node["exec"] || entry.node["exec"].IsNull()) return absl::OkStatus();
  absl::StatusOr<ExecPlugin> plugin = ReadExec(entry.node["exec"], entry.file);
  if (!plugin.ok()) return plugin.status();
  identity->exec = *std::move(plugin);
  return absl::OkStatus();
}

absl::Status ReadCluster(const Entry& entry, Endpoint* endpoint) {
  endpoint->server = Text(entry.node, "server");
  while (endpoint->server.ends_with('/')) endpoint->server.pop_back();
  if (!endpoint->server.starts_with("https://") && !endpoint->server.starts_with("http://")) {
    return Bad(entry.file, fmt::format("server \"{}\" is neither https://HOST:PORT nor "
                                       "http://HOST:PORT",
                                       endpoint->server));
  }
  absl::StatusOr<std::string> ca = Pem(entry, "certificate-authority");
  if (!ca.ok()) return ca.status();
  endpoint->ca_pem = *std::move(ca);
  const bool is_inline = !Text(entry.node, "certificate-authority-data").empty();
  if (const std::string path = Text(entry.node, "certificate-authority");
      !is_inline && !path.empty())
    endpoint->ca_file = Resolve(entry.file, path);
  endpoint->tls_server_name = Text(entry.node, "tls-server-name");
  endpoint->proxy_url = Text(entry.node, "proxy-url");
  endpoint->skips_tls_verify = Flag(entry.node, "insecure-skip-tls-verify");
  return absl::OkStatus();
}

std::vector<std::string> NamesOf(const std::map<std::string, Entry>& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

absl::StatusOr<const Entry*> Find(const std::map<std::string, Entry>& entries, const char* kind,
                                  const std::string& name) {
  const auto found = entries.find(name);
  if (found != entries.end()) return &found->second;
  return absl::NotFoundError(
      fmt::format("the kubeconfig has no {} \"{}\"; it has {}", kind, name,
                  entries.empty() ? std::string("none")
                                  : fmt::format("{}", fmt::join(NamesOf(entries), ", "))));
}

absl::StatusOr<Endpoint> ReadContext(const Merged& merged, const std::string& name) {
  Endpoint endpoint;
  endpoint.context = name;
  const absl::StatusOr<const Entry*> context = Find(merged.contexts, "context", name);
  if (!context.ok()) return context.status();
  if (std::string space = Text((*context)->node, "namespace"); !space.empty())
    endpoint.name_space = std::move(space);
  const absl::StatusOr<const Entry*> cluster =
      Find(merged.clusters, "cluster", Text((*context)->node, "cluster"));
  if (!cluster.ok()) return cluster.status();
  if (absl::Status status = ReadCluster(**cluster, &endpoint); !status.ok()) return status;
  const std::string user_name = Text((*context)->node, "user");
  if (user_name.empty()) return endpoint;
  const absl::StatusOr<const Entry*> user = Find(merged.users, "user", user_name);
  if (!user.ok()) return user.status();
  if (absl::Status status = ReadUser(**user, &endpoint.identity); !status.ok()) return status;
  return endpoint;
}

}  // namespace

absl::StatusOr<Endpoint> ReadKubeconfig(const std::vector<std::string>& files,
                                        const std::string& context) {
  const absl::StatusOr<Merged> merged = Merge(files);
  if (!merged.ok()) return merged.status();
  const std::string& name = context.empty() ? merged->current_context : context;
  if (name.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("the kubeconfig has no current-context; set kubernetes.context to one of {}",
                    fmt::join(NamesOf(merged->contexts), ", ")));
  }
  try {
    return ReadContext(*merged, name);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("context \"{}\" of the kubeconfig: {}", name, error.what()));
  }
}

std::vector<std::string> DefaultKubeconfigFiles() {
  if (const char* list = std::getenv("KUBECONFIG"); list != nullptr && *list != '\0')
    return absl::StrSplit(list, ':', absl::SkipEmpty());
  const char* home = std::getenv("HOME");
  if (home == nullptr) return {};
  const std::string file = std::string(home) + "/.kube/config";
  std::error_code error;
  return std::filesystem::exists(file, error) ? std::vector{file} : std::vector<std::string>();
}

absl::StatusOr<Endpoint> InClusterEndpoint(const std::string& directory) {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  Endpoint endpoint;
  endpoint.identity.token_file = directory + "/token";
  if (host == nullptr || port == nullptr ||
      !std::filesystem::exists(endpoint.identity.token_file)) {
    return absl::FailedPreconditionError(
        "there is no kubeconfig, and this process runs in no pod with a service account: set "
        "kubernetes.kubeconfig");
  }
  const bool is_v6 = std::string_view(host).find(':') != std::string_view::npos;
  endpoint.server =
      fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
  endpoint.ca_file = directory + "/ca.crt";
  absl::StatusOr<std::string> ca = ReadFile(endpoint.ca_file, kMaxPemBytes);
  if (!ca.ok()) return ca.status();
  endpoint.ca_pem = *std::move(ca);
  const absl::StatusOr<std::string> space = ReadFile(directory + "/namespace", kMaxPemBytes);
  if (space.ok() && !space->empty()) endpoint.name_space = *space;
  return endpoint;
}

}  // namespace muster::kubernetes
