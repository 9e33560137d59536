#include "agents/kubernetes/api/credentials.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/json_fields.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// A token that ends while its request is under way is of no use.
constexpr absl::Duration kExpiryMargin = absl::Seconds(10);
// Cloud providers' plug-ins ask their cloud for a token; one that takes longer hangs.
constexpr absl::Duration kPluginTimeout = absl::Seconds(30);
constexpr size_t kMaxPluginBytes = 1 << 20;
constexpr size_t kMaxFileBytes = 1 << 20;
// The last words of a failed plug-in tell why it failed.
constexpr size_t kMaxQuotedBytes = 1000;

absl::Status BadCredential(const std::string& words) { return absl::InvalidArgumentError(words); }

std::string Bearer(const std::string& token) {
  return token.empty() ? std::string() : "Bearer " + token;
}

std::string Basic(const Identity& identity) {
  return "Basic " + absl::Base64Escape(identity.user + ":" + identity.password);
}

std::string LastLinesOf(const std::string& text) {
  const std::string trimmed(absl::StripAsciiWhitespace(text));
  return trimmed.size() <= kMaxQuotedBytes ? trimmed
                                           : trimmed.substr(trimmed.size() - kMaxQuotedBytes);
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& file, const char* what) {
  absl::StatusOr<std::string> text = ReadFile(file, kMaxFileBytes);
  if (text.ok()) text = std::string(absl::StripAsciiWhitespace(*text));
  if (text.ok() && !text->empty()) return text;
  const std::string words =
      text.ok() ? file + " is empty" : std::string(ToStd(text.status().message()));
  return absl::UnauthenticatedError(fmt::format("{} for the API server: {}", what, words));
}

std::string ExecInfo(const ExecPlugin& plugin, const Endpoint& endpoint) {
  Json spec = {{"interactive", false}};
  if (plugin.wants_cluster) {
    spec["cluster"] = {{"server", endpoint.server},
                       {"tls-server-name", endpoint.tls_server_name},
                       {"insecure-skip-tls-verify", endpoint.skips_tls_verify},
                       {"certificate-authority-data", absl::Base64Escape(endpoint.ca_pem)},
                       {"proxy-url", endpoint.proxy_url}};
  }
  return Json{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", spec}}
      .dump();
}

bool IsGood(const Credential& credential) {
  const auto never = absl::InfiniteFuture();
  return absl::Now() + kExpiryMargin < credential.expiry.value_or(never) &&
         agents::SteadyNow() < credential.read_again.value_or(never);
}

}  // namespace

absl::StatusOr<Credential> ParseExecCredential(const std::string& text,
                                               const std::string& api_version) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return BadCredential("it printed no JSON object");
  if (TextAt(root, "kind") != "ExecCredential")
    return BadCredential("it printed no ExecCredential");
  if (TextAt(root, "apiVersion") != api_version) {
    return BadCredential(fmt::format("it printed apiVersion \"{}\", and the kubeconfig says {}",
                                     TextAt(root, "apiVersion"), api_version));
  }
  const auto status = root.find("status");
  if (status == root.end() || !status->is_object())
    return BadCredential("its ExecCredential has no status");
  Credential credential;
  credential.authorization = Bearer(TextAt(*status, "token"));
  credential.certificate_pem = TextAt(*status, "clientCertificateData");
  credential.key_pem = TextAt(*status, "clientKeyData");
  if (credential.certificate_pem.empty() != credential.key_pem.empty())
    return BadCredential("of clientCertificateData and clientKeyData one is missing");
  if (credential.authorization.empty() && credential.certificate_pem.empty())
    return BadCredential("its status has neither a token nor a certificate");
  if (const std::string expiry = TextAt(*status, "expirationTimestamp"); !expiry.empty()) {
    absl::Time time;
    if (!absl::ParseTime(absl::RFC3339_full, expiry, &time, nullptr))
      return BadCredential(fmt::format("its expirationTimestamp \"{}\" is no time", expiry));
    credential.expiry = time;
  }
  return credential;
}

absl::StatusOr<Credential> Credentials::RunPlugin(const ExecPlugin& plugin) {
  hosts::Command command;
  command.argv = {plugin.command};
  command.argv.insert(command.argv.end(), plugin.args.begin(), plugin.args.end());
  command.env = plugin.env;
  command.env["KUBERNETES_EXEC_INFO"] = ExecInfo(plugin, endpoint_);
  command.timeout = kPluginTimeout;
  command.max_stdout_bytes = kMaxPluginBytes;
  const auto failed = [&](const std::string& words) { return PluginError(plugin, words); };
  const absl::StatusOr<hosts::CommandResult> result = host_.Run(command);
  if (!result.ok()) return failed(std::string(ToStd(result.status().message())));
  if (!result->ok()) {
    return failed(fmt::format("it ended with {} {}: {}", result->signal != 0 ? "signal" : "code",
                              result->signal != 0 ? result->signal : result->exit_code,
                              LastLinesOf(result->stderr_data)));
  }
  absl::StatusOr<Credential> credential =
      ParseExecCredential(result->stdout_data, plugin.api_version);
  if (!credential.ok()) return failed(std::string(ToStd(credential.status().message())));
  return credential;
}

absl::StatusOr<Credential> Credentials::Make() {
  const Identity& identity = endpoint_.identity;
  if (identity.exec.has_value()) return RunPlugin(*identity.exec);
  Credential credential;
  credential.certificate_pem = identity.certificate_pem;
  credential.key_pem = identity.key_pem;
  for (const auto& [file, pem, what] :
       {std::tuple(&identity.certificate_file, &credential.certificate_pem, "the certificate"),
        std::tuple(&identity.key_file, &credential.key_pem, "the certificate"),
        std::tuple(&endpoint_.ca_file, &credential.ca_pem, "the certificate authority")}) {
    if (file->empty()) continue;
    absl::StatusOr<std::string> text = ReadSecretFile(*file, what);
    if (!text.ok()) return text.status();
    *pem = *std::move(text);
    credential.read_again = agents::SteadyNow() + file_age_;
  }
  if (!identity.token_file.empty()) {
    const absl::StatusOr<std::string> token = ReadSecretFile(identity.token_file, "the token");
    if (!token.ok()) return token.status();
    credential.authorization = Bearer(*token);
    credential.read_again = agents::SteadyNow() + file_age_;
  } else if (!identity.token.empty()) {
    credential.authorization = Bearer(identity.token);
  } else if (!identity.user.empty()) {
    credential.authorization = Basic(identity);
  }
  return credential;
}

Credentials::~Credentials() {
  if (plugin_.joinable()) plugin_.join();
}

absl::StatusOr<Credential> Credentials::Get(absl::Time deadline) {
  MutexLock lock(mutex_);
  if (credential_.has_value() && IsGood(*credential_)) return *credential_;
  if (!endpoint_.identity.exec.has_value()) {
    absl::StatusOr<Credential> made = Make();
    if (made.ok()) credential_ = *made;
    // The file may be half written just now; the known credential holds until it is refused.
    if (!made.ok() && credential_.has_value()) return *credential_;
    return made;
  }
  if (agents::SteadyNow() < failure_end_) return made_.status();
  if (!is_plugin_running_) StartPluginLocked();
  const uint64_t before = plugins_ended_;
  // A plug-in takes no longer than its own time.
  const absl::Duration wait = std::min(deadline - agents::SteadyNow(), 2 * kPluginTimeout);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(wait);
  while (plugins_ended_ == before) {
    if (!lock.WaitUntil(changed_, due) && plugins_ended_ == before) return StillRuns();
  }
  return made_;
}

void Credentials::StartPluginLocked() {
  if (plugin_.joinable()) plugin_.join();  // it has ended
  is_plugin_running_ = true;
  plugin_ = std::thread([this] { PluginEnded(Make()); });
}

void Credentials::PluginEnded(absl::StatusOr<Credential> made) {
  const MutexLock lock(mutex_);
  made_ = std::move(made);
  if (made_.ok()) credential_ = *made_;
  if (!made_.ok()) failure_end_ = agents::SteadyNow() + failure_holds_;
  ++plugins_ended_;
  is_plugin_running_ = false;
  changed_.notify_all();
}

absl::Status Credentials::StillRuns() const {
  return PluginError(*endpoint_.identity.exec,
                     "it did not end within the time of this request; try it by hand");
}

absl::Status Credentials::PluginError(const ExecPlugin& plugin, const std::string& words) const {
  return absl::UnauthenticatedError(fmt::format(
      "credentials plug-in \"{}\" of context \"{}\": {}{}{}", plugin.command, endpoint_.context,
      words, plugin.install_hint.empty() ? "" : "\n", plugin.install_hint));
}

void Credentials::Refuse(const Credential& refused) {
  const MutexLock lock(mutex_);
  // Another request may have had it renewed meanwhile.
  if (!credential_.has_value() || credential_->authorization != refused.authorization ||
      credential_->certificate_pem != refused.certificate_pem) {
    return;
  }
  credential_.reset();
}

}  // namespace muster::kubernetes
