#include "agents/slurm/credentials.h"

#include <algorithm>
#include <array>
#include <optional>

#include "agents/core/registry_account.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/fields.h"
#include "contract/errors.h"
#include "contract/image.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr size_t kMaxUserBytes = 128;

// netrc separates words by blanks, and has no way to quote one.
bool IsWord(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

std::vector<std::string_view> SplitLine(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == line.npos) return words;
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

// Returns the host that an entry beginning on this line is for; nothing if none does.
std::optional<std::string_view> HostOfLine(std::string_view line) {
  const std::vector<std::string_view> words = SplitLine(line);
  if (words.size() < 2 || words[0] != "machine") return std::nullopt;
  return words[1];
}

// Returns whether an entry of a line before goes on here.
bool ContinuesEntry(std::string_view line) {
  constexpr std::array<std::string_view, 3> kRest = {"login", "password", "account"};
  const std::vector<std::string_view> words = SplitLine(line);
  return !words.empty() && std::find(kRest.begin(), kRest.end(), words[0]) != kRest.end();
}

// The line is name:password:uid:gid:comment:home:shell, of the user that commands run as there.
absl::StatusOr<std::string> HomeOn(hosts::Host* host) {
  hosts::Command command;
  command.argv = {"/bin/sh", "-c", "getent passwd \"$(id -u)\""};
  const absl::StatusOr<hosts::CommandResult> result = host->Run(command);
  if (!result.ok()) return absl::UnavailableError(result.status().message());
  const std::vector<std::string_view> lines = Lines(result->stdout_data);
  const std::vector<std::string_view> fields =
      lines.empty() ? std::vector<std::string_view>() : Split(lines.front(), ':');
  if (!result->ok() || fields.size() != 7 || !fields[5].starts_with('/')) {
    return absl::UnavailableError(
        fmt::format("{} does not tell where the user's home is: getent passwd ended with {}",
                    host->Name(), result->exit_code));
  }
  return std::string(fields[5]);
}

// Empty if there is no such file.
absl::StatusOr<std::string> ReadCredentials(hosts::Host* host, const std::string& path) {
  absl::StatusOr<std::string> text = host->ReadFile(path, kMaxCredentialsBytes);
  if (text.status().code() == absl::StatusCode::kNotFound) return std::string();
  return text;
}

std::string DirectoryIn(const std::string& home) { return home + "/.config/enroot"; }

}  // namespace

absl::StatusOr<Credential> CheckCredential(Credential credential) {
  const absl::Status completed =
      agents::CompleteRegistryAccount(&credential.registry, &credential.user);
  if (!completed.ok()) return completed;
  if (!IsWord(credential.user) || credential.user.size() > kMaxUserBytes) {
    return contract::BadField("user", fmt::format("\"{}\" is not a user's name; use up to {} "
                                                  "printable ASCII characters without blanks",
                                                  credential.user, kMaxUserBytes));
  }
  if (!IsWord(credential.secret) || credential.secret.size() > kMaxSecretBytes) {
    return contract::BadField(
        "secret", fmt::format("standard input must be the secret alone: 1 to {} printable ASCII "
                              "characters without blanks, on one line",
                              kMaxSecretBytes));
  }
  if (credential.secret.front() == '$') {
    return contract::BadField("secret",
                              "it begins with '$', which enroot takes for a shell's variable or "
                              "command; use another secret");
  }
  return credential;
}

std::vector<std::string> CredentialHosts(std::string_view registry) {
  if (registry == "nvcr.io") return {std::string(registry), "authn.nvidia.com"};
  if (registry == "docker.io") return {"registry-1.docker.io", "auth.docker.io"};
  return {std::string(registry.substr(0, registry.find(':')))};
}

std::vector<std::string> HostsWithCredentials(std::string_view text) {
  std::vector<std::string> hosts;
  for (std::string_view line : Lines(text)) {
    if (const auto host = HostOfLine(line); host.has_value()) hosts.emplace_back(*host);
  }
  return hosts;
}

std::string WithCredential(std::string_view text, const Credential& credential) {
  const std::vector<std::string> hosts = CredentialHosts(credential.registry);
  std::string changed;
  bool is_replaced = false;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (std::string_view line : text.empty() ? std::vector<std::string_view>() : Split(text, '\n')) {
    if (const auto host = HostOfLine(line); host.has_value()) {
      is_replaced = std::find(hosts.begin(), hosts.end(), *host) != hosts.end();
    } else if (!ContinuesEntry(line)) {
      is_replaced = false;
    }
    if (!is_replaced) changed += fmt::format("{}\n", line);
  }
  for (const std::string& host : hosts) {
    changed +=
        fmt::format("machine {} login {} password {}\n", host, credential.user, credential.secret);
  }
  return changed;
}

bool CredentialsFile::Covers(std::string_view registry) const {
  const std::vector<std::string> needed = CredentialHosts(registry);
  return std::all_of(needed.begin(), needed.end(), [&](const std::string& host) {
    return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
  });
}

absl::StatusOr<CredentialsFile> LookAtCredentials(hosts::Host* host) {
  const absl::StatusOr<std::string> home = HomeOn(host);
  if (!home.ok()) return home.status();
  CredentialsFile file;
  file.path = DirectoryIn(*home) + "/.credentials";
  const absl::StatusOr<hosts::FileInfo> info = host->Stat(file.path);
  if (info.status().code() == absl::StatusCode::kNotFound) return file;
  if (!info.ok()) return info.status();
  file.exists = true;
  file.mode = info->mode;
  const absl::StatusOr<std::string> text = ReadCredentials(host, file.path);
  if (!text.ok()) return text.status();
  file.hosts = HostsWithCredentials(*text);
  return file;
}

absl::StatusOr<std::string> InstallCredential(hosts::Host* host, const Credential& credential) {
  const absl::StatusOr<std::string> home = HomeOn(host);
  if (!home.ok()) return home.status();
  const std::string path = DirectoryIn(*home) + "/.credentials";
  const absl::StatusOr<std::string> text = ReadCredentials(host, path);
  if (!text.ok()) return text.status();
  if (absl::Status status = host->MakeDirectories(DirectoryIn(*home), hosts::kPrivateDirectory);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = host->WriteFile(path, WithCredential(*text, credential),
                                            {.mode = hosts::kPrivateFile, .sync = true});
      !status.ok()) {
    return status;
  }
  return path;
}

}  // namespace muster::slurm
