#include "clients/cli/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/contexts.h"
#include "clients/cli/token_source.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/characters.h"
#include "daemon/read_file.h"
#include "digest/sha256.h"
#include "pki/certificates.h"
#include "rpc/address.h"

namespace muster::cli {
namespace {

// That leaves room for comments; more is not a configuration.
constexpr size_t kMaxConfigBytes = 64 << 10;

struct FileConfig {
  std::string broker;
  std::optional<Format> format;
  std::optional<std::vector<std::string>> leave_behind;
};

void ReadDocument(const YAML::Node& document, client::YamlReader* in, FileConfig* out) {
  const auto read_format = [&](const client::YamlValue& value) {
    std::string name;
    if (!in->Text(value, &name)) return;
    out->format = ParseFormat(name);
    if (!out->format) {
      in->Problem(value, fmt::format("{} is not {}", contract::Quoted(name), kFormatNames));
    }
  };
  const auto read_name = [&](const client::YamlValue& value) {
    std::string name;
    if (!in->Text(value, &name)) return;
    const std::string_view start = std::string_view(name).substr(0, name.find('*'));
    const bool is_pattern = name.size() <= start.size() + 1 &&
                            (start.empty() ? name == "*" : contract::IsVariableName(start));
    if (is_pattern) return out->leave_behind->push_back(name);
    in->Problem(value, fmt::format("{} is not a variable's name, or the beginning of names with a "
                                   "'*' behind",
                                   contract::Quoted(name)));
  };
  const auto read_sbatch = [&](const client::YamlValue& value) {
    in->Mapping(value, {{"leave_behind", [&](const client::YamlValue& list) {
                           out->leave_behind.emplace();
                           in->List(list, read_name);
                         }}});
  };
  in->Mapping({document, ""},
              {{"broker", [&](const client::YamlValue& value) { in->Text(value, &out->broker); }},
               {"output", read_format},
               {"sbatch", read_sbatch}});
}

absl::StatusOr<FileConfig> ReadConfigFile(const std::string& path) {
  FileConfig config;
  if (path.empty() || access(path.c_str(), F_OK) != 0) return config;
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  const auto documents = client::LoadYaml(path, *text, kMaxConfigBytes);
  if (!documents.ok()) return documents.status();
  client::YamlReader in(path, *text);
  for (const YAML::Node& document : *documents) {
    if (!document.IsNull()) ReadDocument(document, &in, &config);
  }
  if (!in.status().ok()) return in.status();
  return config;
}

// An empty variable counts as none, as people unset them that way.
std::string_view Get(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Muster's own of the user's directories of this kind; empty if there is none.
std::string Directory(const Environment& environment, const char* variable,
                      std::string_view in_home) {
  const std::string_view xdg = Get(environment, variable);
  // The specification of these directories says to ignore a relative one.
  if (xdg.starts_with('/')) return fmt::format("{}/muster", xdg);
  const std::string_view home = Get(environment, "HOME");
  return home.empty() ? "" : fmt::format("{}/{}/muster", home, in_home);
}

// The context that is named by a flag, a variable or the user's choice, if the broker comes from
// it; an empty one otherwise. Its token never goes to a broker that something else names.
absl::StatusOr<NamedContext> ChooseContext(const std::string& flag, const Environment& environment,
                                           Config* config) {
  const bool is_flag = !flag.empty();
  if (!is_flag && !Get(environment, "MUSTER_BROKER").empty()) return NamedContext();
  const std::string path = ContextsPath(environment);
  const absl::StatusOr<Contexts> contexts = ReadContexts(path);
  if (!contexts.ok()) return contexts.status();
  const std::string variable(Get(environment, "MUSTER_CONTEXT"));
  const std::string& name = is_flag ? flag : variable.empty() ? contexts->current : variable;
  if (name.empty()) return NamedContext();
  const auto found = contexts->by_name.find(name);
  if (found == contexts->by_name.end()) return NoSuchContext(*contexts, name);
  config->broker = found->second.broker;
  config->broker_origin = fmt::format("named by the context {}", contract::Quoted(name));
  config->context = name;
  config->login_file = LoginPath(environment, name);
  return found->second;
}

// Finds the broker. Returns the context that names it; an empty one if something else does.
absl::StatusOr<NamedContext> ChooseBroker(const Invocation& call, const Environment& environment,
                                          const FileConfig& file, Config* config) {
  config->broker = call.broker;
  if (!config->broker.empty()) return NamedContext();
  absl::StatusOr<NamedContext> context = ChooseContext(call.context, environment, config);
  if (!context.ok() || !config->broker.empty()) return context;
  const std::string path = ConfigPath(environment);
  config->broker = Get(environment, "MUSTER_BROKER");
  config->broker_origin = "named by MUSTER_BROKER";
  if (!config->broker.empty()) return context;
  config->broker = file.broker;
  config->broker_origin = fmt::format("named in {}", path);
  if (!config->broker.empty()) return context;
  config->broker = OwnBroker(environment);
  config->broker_origin = fmt::format("tried because none is named by --broker, by MUSTER_BROKER{}",
                                      path.empty() ? "" : fmt::format(" or in {}", path));
  return context;
}

absl::StatusOr<std::string> ChooseToken(const Invocation& call, const Environment& environment,
                                        const NamedContext& context) {
  if (!call.token_file.empty()) return ReadTokenFile(call.token_file);
  const std::string_view token = Get(environment, "MUSTER_TOKEN");
  if (!token.empty()) return CheckToken(token, "MUSTER_TOKEN");
  const std::string_view file = Get(environment, "MUSTER_TOKEN_FILE");
  if (!file.empty()) return ReadTokenFile(std::string(file));
  return context.token_file.empty() ? std::string() : ReadTokenFile(context.token_file);
}

// The CAs of a broker over TLS; empty: none are named.
absl::StatusOr<std::string> ChooseCa(const Invocation& call, const Environment& environment,
                                     const NamedContext& context) {
  std::string file = call.ca_file;
  if (file.empty()) file = Get(environment, "MUSTER_CA_FILE");
  if (file.empty()) file = context.ca_file;
  if (file.empty()) return std::string();
  return ReadFile(file, pki::kMaxPemBytes);
}

}  // namespace

std::string ConfigPath(const Environment& environment) {
  const std::string directory = Directory(environment, "XDG_CONFIG_HOME", ".config");
  return directory.empty() ? "" : directory + "/config.yaml";
}

std::string OwnBroker(const Environment& environment) {
  const std::string directory = Directory(environment, "XDG_STATE_HOME", ".local/state");
  const std::string address = fmt::format("unix:{}/broker.sock", directory);
  const bool is_address = !directory.empty() && rpc::ParseAddress(address).ok();
  return is_address ? address : "";
}

std::string ContextsPath(const Environment& environment) {
  const std::string directory = Directory(environment, "XDG_CONFIG_HOME", ".config");
  return directory.empty() ? "" : directory + "/contexts.yaml";
}

std::string LoginPath(const Environment& environment, std::string_view context) {
  // A context may have a name that is none of a file.
  constexpr size_t kDigits = 32;
  const std::string directory = Directory(environment, "XDG_CONFIG_HOME", ".config");
  if (directory.empty()) return "";
  return fmt::format("{}/logins/{}.json", directory, Sha256Of(context).substr(0, kDigits));
}

absl::StatusOr<Config> LoadConfig(const Invocation& call, const Environment& environment) {
  const absl::StatusOr<FileConfig> file = ReadConfigFile(ConfigPath(environment));
  if (!file.ok()) return file.status();
  Config config;
  config.format = call.format.value_or(file->format.value_or(Format::kTable));
  if (file->leave_behind) config.leave_behind = *file->leave_behind;
  const absl::StatusOr<NamedContext> context = ChooseBroker(call, environment, *file, &config);
  if (!context.ok()) return context.status();
  absl::StatusOr<std::string> token = ChooseToken(call, environment, *context);
  if (!token.ok()) return token.status();
  config.token = *std::move(token);
  if (config.broker.starts_with("tls:")) {
    absl::StatusOr<std::string> ca = ChooseCa(call, environment, *context);
    if (!ca.ok()) return ca.status();
    config.ca = *std::move(ca);
  }
  return config;
}

}  // namespace muster::cli
