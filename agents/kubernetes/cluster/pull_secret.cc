#include "agents/kubernetes/cluster/pull_secret.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "agents/core/registry_account.h"
#include "agents/kubernetes/api/endpoint.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

constexpr char kDataKey[] = ".dockerconfigjson";
constexpr char kSecretType[] = "kubernetes.io/dockerconfigjson";
constexpr char kDockerHub[] = "docker.io";
// The key by which kubelets find the credentials of Docker Hub.
constexpr char kDockerHubKey[] = "https://index.docker.io/v1/";
constexpr size_t kMaxUserBytes = 128;
// Tokens of registries have a few thousand bytes at most.
constexpr size_t kMaxPasswordBytes = 16 << 10;
// Somebody else may write the Secret between our reading and our writing.
constexpr int kMaxTries = 3;

bool IsPrintable(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c >= ' ' && c != 0x7F; });
}

std::string KeyOf(const std::string& registry) {
  return registry == kDockerHub ? kDockerHubKey : registry;
}

std::string Encoded(const std::string& text) { return absl::Base64Escape(text); }

// Empty: there is none, or it is no text.
std::string DataOf(const Json& secret) {
  const Json& data = At(secret, "data");
  if (!data.is_object() || !data.contains(kDataKey) || !data[kDataKey].is_string()) return {};
  std::string text;
  if (!absl::Base64Unescape(data[kDataKey].get<std::string>(), &text)) return {};
  return text;
}

absl::Status WithRemedy(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(
      fmt::format("{}; run this with a kubeconfig that may get, create and update Secrets in the "
                  "namespace: the "
                  "agent's own account cannot read them",
                  ToStd(status.message())));
}

class Installer {
 public:
  Installer(const KubernetesConfig& config, std::string name_space, Api* api)
      : api_(*api),
        name_space_(std::move(name_space)),
        name_(config.image_pull_secrets.empty() ? kDefaultPullSecret
                                                : config.image_pull_secrets.front()) {}

  absl::StatusOr<std::string> Install(const RegistryCredential& credential) {
    absl::Status status;
    for (int tries = 0; tries < kMaxTries; ++tries) {
      status = TryOnce(credential);
      if (!absl::IsAborted(status) && !absl::IsAlreadyExists(status)) break;
    }
    if (!status.ok()) return WithRemedy(status);
    return fmt::format("Secret {} in namespace {} has the credentials for {}", name_, name_space_,
                       credential.registry);
  }

 private:
  std::string Collection() const {
    return fmt::format("/api/v1/namespaces/{}/secrets", Escape(name_space_));
  }

  absl::Status TryOnce(const RegistryCredential& credential) {
    const std::string path = Collection() + "/" + Escape(name_);
    const absl::StatusOr<ApiAnswer> present = api_.Call({.path = path});
    if (!present.ok()) return present.status();
    if (present->status == 404) return Write("POST", Collection(), NewSecret(), "", credential);
    if (!present->ok()) return RefusalOf(*present, "get Secret " + name_);
    if (TextAt(present->body, "type") != kSecretType) {
      return absl::FailedPreconditionError(fmt::format(
          "Secret {} in namespace {} is of type {}, not {}: it is something else, so nothing was "
          "written; set kubernetes.image_pull_secrets to another name",
          name_, name_space_, TextAt(present->body, "type"), kSecretType));
    }
    return Write("PUT", path, present->body, DataOf(present->body), credential);
  }

  Json NewSecret() const {
    return {{"apiVersion", "v1"},
            {"kind", "Secret"},
            {"metadata", {{"name", name_}, {"namespace", name_space_}}},
            {"type", kSecretType}};
  }

  // Writes with the Secret's resourceVersion in it, so that nobody's change is lost.
  absl::Status Write(const std::string& method, const std::string& path, Json secret,
                     const std::string& text, const RegistryCredential& credential) {
    const absl::StatusOr<std::string> changed = WithRegistry(text, credential);
    if (!changed.ok()) return changed.status();
    secret["data"][kDataKey] = Encoded(*changed);
    const absl::StatusOr<ApiAnswer> answer =
        api_.Call({.method = method, .path = path, .body = std::move(secret)});
    if (!answer.ok()) return answer.status();
    return answer->ok() ? absl::OkStatus() : RefusalOf(*answer, "write Secret " + name_);
  }

  Api& api_;
  const std::string name_space_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<RegistryCredential> CheckRegistryCredential(RegistryCredential credential) {
  const absl::Status completed =
      agents::CompleteRegistryAccount(&credential.registry, &credential.user);
  if (!completed.ok()) return completed;
  if (!IsPrintable(credential.user) || credential.user.size() > kMaxUserBytes ||
      credential.user.find(':') != std::string::npos) {
    return contract::BadField("user", fmt::format("\"{}\" is not a user's name; use up to {} "
                                                  "printable characters without a colon",
                                                  credential.user, kMaxUserBytes));
  }
  if (!IsPrintable(credential.password) || credential.password.size() > kMaxPasswordBytes) {
    return contract::BadField("secret",
                              fmt::format("standard input must be the secret alone: 1 to {} "
                                          "printable bytes on one line",
                                          kMaxPasswordBytes));
  }
  return credential;
}

absl::StatusOr<std::string> WithRegistry(const std::string& text,
                                         const RegistryCredential& credential) {
  Json config =
      text.empty() ? Json::object() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_config =
      config.is_object() && (!config.contains("auths") || config["auths"].is_object());
  if (!is_config) {
    return absl::FailedPreconditionError(
        "the Secret's .dockerconfigjson is not in the form of Docker's config.json, so nothing was "
        "written; delete the Secret, or set kubernetes.image_pull_secrets to another name");
  }
  config["auths"][KeyOf(credential.registry)] = {
      {"username", credential.user},
      {"password", credential.password},
      {"auth", Encoded(credential.user + ":" + credential.password)}};
  return config.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> RegistriesOf(const Json& secret) {
  const Json config = Json::parse(DataOf(secret), nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> registries;
  const Json& auths = At(config, "auths");
  for (const auto& [registry, entry] : auths.items()) registries.push_back(registry);
  return registries;
}

absl::StatusOr<std::string> InstallPullSecret(const KubernetesConfig& config, Api* api,
                                              const RegistryCredential& credential) {
  std::vector<std::string> words;
  for (const std::string& name_space : WithNamespaces(config, api->endpoint()).namespaces) {
    absl::StatusOr<std::string> done = Installer(config, name_space, api).Install(credential);
    if (!done.ok()) return done.status();
    words.push_back(*std::move(done));
  }
  if (config.image_pull_secrets.empty()) {
    words.push_back(fmt::format("set kubernetes.image_pull_secrets to {}, so that jobs use it",
                                kDefaultPullSecret));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace muster::kubernetes
