#include "clients/cli/contexts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "clients/cpp/yaml_reader.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

absl::Status Failed(std::string_view what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, ToAbsl(fmt::format("cannot {} {}", what, path)));
}

}  // namespace

absl::Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return Failed("make", part);
    if (slash == path.npos) return absl::OkStatus();
  }
}

absl::StatusOr<Contexts> ReadContexts(const std::string& path) {
  Contexts contexts;
  if (path.empty() || access(path.c_str(), F_OK) != 0) return contexts;
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status();
  const auto documents = client::LoadYaml(path, *text, kMaxFileBytes);
  if (!documents.ok()) return documents.status();
  client::YamlReader in(path, *text);
  const auto read_one = [&](const std::string& name, const client::YamlValue& value) {
    NamedContext& one = contexts.by_name[name];
    in.Mapping(value,
               {{"broker", [&](const client::YamlValue& v) { in.Text(v, &one.broker); }},
                {"token_file", [&](const client::YamlValue& v) { in.Text(v, &one.token_file); }},
                {"ca_file", [&](const client::YamlValue& v) { in.Text(v, &one.ca_file); }}});
    if (one.broker.empty()) in.Problem(value, "broker is required");
  };
  for (const YAML::Node& document : *documents) {
    if (document.IsNull()) continue;
    in.Mapping({document, ""},
               {{"current", [&](const client::YamlValue& v) { in.Text(v, &contexts.current); }},
                {"contexts", [&](const client::YamlValue& v) { in.Entries(v, read_one); }}});
  }
  if (!in.status().ok()) return in.status();
  return contexts;
}

absl::Status WriteContexts(const std::string& path, const Contexts& contexts) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  if (!contexts.current.empty()) {
    out << YAML::Key << "current" << YAML::Value << YAML::DoubleQuoted << contexts.current;
  }
  out << YAML::Key << "contexts" << YAML::Value << YAML::BeginMap;
  for (const auto& [name, context] : contexts.by_name) {
    out << YAML::Key << YAML::DoubleQuoted << name << YAML::Value << YAML::BeginMap;
    out << YAML::Key << "broker" << YAML::Value << YAML::DoubleQuoted << context.broker;
    if (!context.token_file.empty()) {
      out << YAML::Key << "token_file" << YAML::Value << YAML::DoubleQuoted << context.token_file;
    }
    if (!context.ca_file.empty()) {
      out << YAML::Key << "ca_file" << YAML::Value << YAML::DoubleQuoted << context.ca_file;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndMap << YAML::EndMap;
  absl::Status status = MakeDirectories(path.substr(0, path.rfind('/')));
  if (!status.ok()) return status;
  constexpr mode_t kOwnersOnly = 0600;
  return WriteFileWhole(path, fmt::format("# Written by: muster context\n{}\n", out.c_str()),
                        kOwnersOnly);
}

absl::Status NoSuchContext(const Contexts& contexts, const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& [other, _] : contexts.by_name) names.push_back(other);
  return absl::NotFoundError(
      ToAbsl(fmt::format("there is no context {}; {}", contract::Quoted(name),
                         names.empty() ? "muster context set NAME --broker ADDRESS makes one"
                                       : fmt::format("there are: {}", fmt::join(names, ", ")))));
}

}  // namespace muster::cli
