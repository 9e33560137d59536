#include "agents/kubernetes/manifest/projects.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/manifest/pod_security.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/kubernetes_names.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

using contract::BadField;
using contract::Quoted;

constexpr char kForm[] = "PROJECT: NAMESPACE [service_account=NAME] [uid=NUMBER] [token=yes]";
// As Kubernetes has them.
constexpr int64_t kMaxUid = 2147483647;
// Namespaces of Kubernetes itself.
constexpr std::string_view kSystemPrefix = "kube-";

absl::Status SetWord(std::string_view word, ProjectPlace* place) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == word.npos ? "" : word.substr(equals + 1);
  if (key == "service_account") {
    if (!contract::IsDnsSubdomain(value)) {
      return absl::InvalidArgumentError(
          fmt::format("{} is not a service account's name", Quoted(value)));
    }
    place->service_account = value;
    return absl::OkStatus();
  }
  if (key == "uid") {
    int64_t uid = 0;
    if (!absl::SimpleAtoi(ToAbsl(value), &uid) || uid < 1 || uid > kMaxUid) {
      return absl::InvalidArgumentError(fmt::format(
          "uid {} is not 1 to {}; 0 is root, as whom no jobs run here", Quoted(value), kMaxUid));
    }
    place->uid = uid;
    return absl::OkStatus();
  }
  if (key == "token" && (value == "yes" || value == "no")) {
    place->has_token = value == "yes";
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("{} is none of service_account=NAME, uid=NUMBER, token=yes", Quoted(word)));
}

// `right` is the right part of a line.
absl::StatusOr<ProjectPlace> ParsePlace(const std::string& right) {
  const std::vector<std::string> words = absl::StrSplit(right, ' ', absl::SkipEmpty());
  ProjectPlace place;
  place.name_space = words.front();
  if (!contract::IsDnsLabel(place.name_space)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a namespace's name: 1 to 63 of a-z, 0-9 and '-', beginning and "
                    "ending with a letter or a digit",
                    Quoted(place.name_space)));
  }
  if (place.name_space.starts_with(kSystemPrefix)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a namespace of Kubernetes itself, in which no jobs run", Quoted(place.name_space)));
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if (absl::Status good = SetWord(words[i], &place); !good.ok()) return good;
  }
  return place;
}

bool Repeats(const users::MapLine& line) { return line.right.find("\\1") != std::string::npos; }

}  // namespace

absl::StatusOr<ProjectMap> ProjectMap::Parse(std::string_view text, std::string file) {
  ProjectMap map(std::move(file));
  size_t number = 0;
  for (const absl::string_view row : absl::StrSplit(ToAbsl(text), '\n')) {
    absl::StatusOr<std::optional<users::MapLine>> line =
        users::ParseMapLine(ToStd(row), ++number, kForm);
    if (!line.ok()) return line.status();
    if (!line->has_value()) continue;
    // Any project's name shows the faults that a line has for all.
    users::MapLine whole = **line;
    if (Repeats(whole)) whole.left = "*";
    absl::StatusOr<ProjectPlace> place =
        ParsePlace(*users::RightPartFor(whole, Repeats(whole) ? "a" : ToStd(whole.left)));
    if (!place.ok()) {
      return absl::InvalidArgumentError(
          ToAbsl(fmt::format("line {}: {}", number, ToStd(place.status().message()))));
    }
    if (place->uid.has_value()) map.uids_.insert(*place->uid);
    if (!Repeats(**line)) map.fixed_.push_back(*std::move(place));
    map.lines_.push_back(**std::move(line));
  }
  if (map.lines_.empty())
    return absl::InvalidArgumentError(fmt::format("it has no line \"{}\"", kForm));
  return map;
}

absl::StatusOr<ProjectPlace> ProjectMap::Find(const std::string& project) const {
  for (const users::MapLine& line : lines_) {
    const std::optional<std::string> right = users::RightPartFor(line, project);
    if (!right.has_value()) continue;
    absl::StatusOr<ProjectPlace> place = ParsePlace(*right);
    if (place.ok()) return place;
    return BadField("project",
                    fmt::format("{} has no namespace on this cluster: {}; its operator can add a "
                                "line for it to the agent's file kubernetes.projects ({})",
                                Quoted(project), ToStd(place.status().message()), file_));
  }
  return BadField("project",
                  fmt::format("{} has no namespace on this cluster; its operator can add a line "
                              "\"{}: NAMESPACE\" to the agent's file kubernetes.projects ({}) and "
                              "restart the agent",
                              Quoted(project), project, file_));
}

absl::StatusOr<KubernetesConfig> WithProjects(KubernetesConfig config) {
  if (!config.projects_file.empty()) {
    const absl::StatusOr<std::string> text =
        users::ReadMap("kubernetes.projects", config.projects_file);
    if (!text.ok()) return text.status();
    absl::StatusOr<ProjectMap> map = ProjectMap::Parse(*text, config.projects_file);
    if (!map.ok()) {
      return absl::InvalidArgumentError(
          ToAbsl(fmt::format("kubernetes.projects (\"{}\"): {}", config.projects_file,
                             ToStd(map.status().message()))));
    }
    config.projects = std::make_shared<const ProjectMap>(*std::move(map));
  }
  if (absl::Status good = CheckPodSecurity(config); !good.ok()) return good;
  if (config.projects == nullptr) return config;
  if (!config.agent_roots.empty()) {
    return absl::InvalidArgumentError(
        "kubernetes.agent_roots cannot be had with kubernetes.projects: each namespace has volumes "
        "of its own, and the agent would read those of one project for another; leave one of them "
        "out");
  }
  std::vector<std::string>& all = config.namespaces;
  for (const ProjectPlace& place : config.projects->fixed()) {
    if (std::find(all.begin(), all.end(), place.name_space) == all.end())
      all.push_back(place.name_space);
  }
  // No run is in a namespace that no project has, so there is none for runs that name none.
  if (config.name_space.empty() && !all.empty()) config.name_space = all.front();
  if (config.name_space.empty()) {
    return absl::InvalidArgumentError(
        "kubernetes.projects has no namespace by its name, only patterns: list the namespaces that "
        "they lead to in kubernetes.namespaces");
  }
  if (all.size() > kMaxNamespaces) {
    return absl::InvalidArgumentError(
        fmt::format("kubernetes.projects and kubernetes.namespaces name {} namespaces, and one "
                    "agent works in {} at most; give the others an agent of their own",
                    all.size(), kMaxNamespaces));
  }
  return config;
}

absl::StatusOr<agent::v1::Assignment> InProject(const agent::v1::Assignment& assignment,
                                                const KubernetesConfig& config) {
  if (config.projects == nullptr) return assignment;
  const v1::JobSpec& spec = assignment.spec();
  const absl::StatusOr<ProjectPlace> place = config.projects->Find(spec.project());
  if (!place.ok()) return place.status();
  const std::vector<std::string>& known = config.namespaces;
  if (std::find(known.begin(), known.end(), place->name_space) == known.end()) {
    return BadField("project",
                    fmt::format("{} is in namespace {} here, and the agent of this cluster works "
                                "in {}: its operator can add it to the agent's setting "
                                "kubernetes.namespaces",
                                Quoted(spec.project()), place->name_space, fmt::join(known, ", ")));
  }
  if (const std::string wanted = NamespaceOf(spec, place->name_space);
      wanted != place->name_space) {
    return BadField(
        spec.kubernetes().namespace_().empty() ? "placement.pool" : "kubernetes.namespace",
        fmt::format("{}: jobs of project {} are in namespace {} on this cluster; leave it out",
                    Quoted(wanted), spec.project(), place->name_space));
  }
  if (const std::string& wanted = spec.kubernetes().service_account();
      !wanted.empty() && wanted != place->service_account) {
    return BadField("kubernetes.service_account",
                    fmt::format("{}: jobs of project {} have the service account {} on this "
                                "cluster; leave it out",
                                Quoted(wanted), spec.project(), place->service_account));
  }
  agent::v1::Assignment placed = assignment;
  v1::KubernetesOptions* own = placed.mutable_spec()->mutable_kubernetes();
  own->set_namespace_(place->name_space);
  own->set_service_account(place->service_account);
  return placed;
}

}  // namespace muster::kubernetes
