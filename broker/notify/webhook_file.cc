#include "broker/notify/webhook_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "broker/disk/files.h"
#include "contract/characters.h"
#include "contract/states.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "daemon/read_file.h"
#include "daemon/settings.h"
#include "oidc/https.h"
#include "pki/certificates.h"

namespace muster::notify {
namespace {

constexpr mode_t kReadableByOthers = 0077;

absl::Status Bad(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

// Holds a webhook together with the files that it names.
struct Entry {
  Webhook webhook;
  std::string secret_file;
  std::string ca_file;
};

absl::Status CheckName(const std::string& name) {
  if (contract::ValidateClusterName(name).ok()) return absl::OkStatus();
  return Bad(fmt::format("{} is no name of a webhook; use 1 to 63 of a-z, 0-9 and '-', such as ops",
                         contract::Quoted(name)));
}

// The message does not have the URL, which may be a secret.
absl::Status SetUrl(const std::string& value, Webhook* webhook) {
  webhook->url = value;
  return oidc::CheckUrl(value);
}

absl::Status SetProject(const std::string& value, Webhook* webhook) {
  webhook->project = value;
  if (contract::ValidateClusterName(value).ok()) return absl::OkStatus();
  return Bad(
      fmt::format("{} is not a project name; use 1 to 63 of a-z, 0-9 and '-', with a letter "
                  "or digit at both ends, or leave it out for all projects",
                  contract::Quoted(value)));
}

absl::Status SetFilter(const std::string& value, Webhook* webhook) {
  absl::StatusOr<contract::Filter> filter = contract::ParseFilter(value, absl::UnixEpoch());
  if (!filter.ok()) return filter.status();
  const auto is_relative = [](const contract::Filter& part, const auto& self) -> bool {
    return part.is_relative ||
           std::any_of(part.children.begin(), part.children.end(),
                       [&self](const contract::Filter& child) { return self(child, self); });
  };
  if (is_relative(*filter, is_relative)) {
    return Bad(
        fmt::format("{} has a time relative to now, and a webhook lasts; write the time "
                    "itself, such as \"2026-01-31T12:00:00Z\"",
                    contract::Quoted(value)));
  }
  webhook->filter = *std::move(filter);
  return absl::OkStatus();
}

absl::Status SetStates(const std::string& value, Webhook* webhook) {
  constexpr v1::JobState kStates[] = {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED,
                                      v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELED};
  webhook->states.clear();
  for (const absl::string_view word : absl::StrSplit(ToAbsl(value), ',', absl::SkipWhitespace())) {
    const std::string name = absl::AsciiStrToUpper(absl::StripAsciiWhitespace(word));
    const auto* const state =
        std::find_if(std::begin(kStates), std::end(kStates),
                     [&name](v1::JobState one) { return contract::Name(one) == name; });
    if (state == std::end(kStates)) {
      return Bad(fmt::format("{} is no state to tell of; use RUNNING, SUCCEEDED, FAILED, CANCELED",
                             contract::Quoted(ToStd(word))));
    }
    webhook->states.push_back(*state);
  }
  return webhook->states.empty() ? Bad("name at least one state, such as FAILED")
                                 : absl::OkStatus();
}

absl::Status SetFormat(const std::string& value, Webhook* webhook) {
  constexpr std::pair<std::string_view, Webhook::Format> kFormats[] = {
      {"muster", Webhook::Format::kMuster},
      {"slack", Webhook::Format::kSlack},
      {"otlp", Webhook::Format::kOtlp}};
  for (const auto& [name, format] : kFormats) {
    if (value != name) continue;
    webhook->format = format;
    return absl::OkStatus();
  }
  return Bad(fmt::format("{} is no format; use muster, slack or otlp", contract::Quoted(value)));
}

std::vector<Setting> SettingsOf(Entry* entry) {
  Webhook* const webhook = &entry->webhook;
  const auto key = [webhook](const char* name) {
    return fmt::format("{}.{}", webhook->name, name);
  };
  const auto into = [webhook](absl::Status (*set)(const std::string&, Webhook*)) {
    return [webhook, set](const std::string& value) { return set(value, webhook); };
  };
  return {
      {key("url"), "", into(SetUrl)},
      {key("secret_file"), "", TextInto(&entry->secret_file)},
      {key("ca_file"), "", TextInto(&entry->ca_file)},
      {key("project"), "", into(SetProject)},
      {key("filter"), "", into(SetFilter)},
      {.key = key("states"), .help = "", .set = into(SetStates), .is_list = true},
      {key("format"), "", into(SetFormat)},
  };
}

// Reads the files that the webhook names.
absl::Status Complete(Entry* entry) {
  Webhook& webhook = entry->webhook;
  const auto wrong = [&webhook](std::string_view key, const absl::Status& why) {
    return Bad(fmt::format("{}.{}: {}", webhook.name, key, ToStd(why.message())));
  };
  if (webhook.url.empty()) return wrong("url", Bad("it is missing; write the receiver's URL"));
  if (entry->secret_file.empty() && webhook.format == Webhook::Format::kMuster) {
    return wrong("secret_file",
                 Bad("it is missing, so that no receiver could tell who calls; name a file with a "
                     "key, made by `openssl rand -hex 32`, mode 0600"));
  }
  if (webhook.format == Webhook::Format::kOtlp &&
      !std::all_of(webhook.states.begin(), webhook.states.end(),
                   [](v1::JobState state) { return contract::IsTerminal(state); })) {
    return wrong("states", Bad("RUNNING does not go with the format otlp: a trace is made at the "
                               "job's end; leave it out"));
  }
  if (!entry->secret_file.empty()) {
    absl::StatusOr<std::string> secret = ReadSecret(entry->secret_file);
    if (!secret.ok()) return wrong("secret_file", secret.status());
    webhook.secret = *std::move(secret);
  }
  if (entry->ca_file.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> ca = ReadFile(entry->ca_file, pki::kMaxPemBytes);
  if (ca.ok() && !pki::ReadCertificate(*ca).ok())
    ca = Bad(fmt::format("{} has no certificate in PEM", entry->ca_file));
  if (!ca.ok()) return wrong("ca_file", ca.status());
  webhook.ca = *std::move(ca);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  const auto file = disk::OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.ok()) return file.status();
  struct stat info = {};
  if (fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Bad(fmt::format("{} is no file", path));
  if ((info.st_mode & kReadableByOthers) != 0) {
    return Bad(fmt::format("{} has mode {:04o}, so that others can read it; chmod 600 {}", path,
                           info.st_mode & 07777, path));
  }
  const absl::StatusOr<std::string> bytes = disk::ReadAt(file->get(), 0, kMaxSecretBytes + 1, path);
  if (!bytes.ok()) return bytes.status();
  const absl::string_view secret = absl::StripTrailingAsciiWhitespace(*bytes);
  if (secret.size() >= kMinSecretBytes && secret.size() <= kMaxSecretBytes)
    return std::string(secret);
  return Bad(fmt::format(
      "{} has {} bytes; a key has {} to {}, and `openssl rand -hex 32` makes a good one", path,
      secret.size(), kMinSecretBytes, kMaxSecretBytes));
}

absl::StatusOr<std::vector<Webhook>> ParseWebhooks(std::string_view text, std::string_view file) {
  const absl::StatusOr<std::vector<std::string>> names = NamesInYaml(text, file, CheckName);
  if (!names.ok()) return names.status();
  if (names->size() > kMaxWebhooks) {
    return Bad(fmt::format("{} has {} webhooks; a broker has at most {}", file, names->size(),
                           kMaxWebhooks));
  }
  std::vector<Entry> entries(names->size());
  std::vector<Setting> settings;
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].webhook.name = (*names)[i];
    for (Setting& setting : SettingsOf(&entries[i])) settings.push_back(std::move(setting));
  }
  if (absl::Status status = ApplyYaml(text, file, "muster-broker", settings); !status.ok())
    return status;
  std::vector<Webhook> webhooks;
  for (Entry& entry : entries) {
    if (absl::Status status = Complete(&entry); !status.ok())
      return Bad(fmt::format("{}: {}", file, ToStd(status.message())));
    webhooks.push_back(std::move(entry.webhook));
  }
  if (!webhooks.empty()) return webhooks;
  return Bad(
      fmt::format("{} names no webhook; write ops: {{url: https://..., secret_file: /...}}", file));
}

absl::StatusOr<std::vector<Webhook>> ReadWebhooks(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status();
  return ParseWebhooks(*text, path);
}

}  // namespace muster::notify
