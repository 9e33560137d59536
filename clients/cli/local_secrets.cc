#include "clients/cli/local_secrets.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/errors.h"
#include "digest/sha256.h"

namespace muster::cli {
namespace {

// Digits of the digest in a name: nobody meets another request's by chance.
constexpr size_t kNameDigits = 32;

v1::SecretUse* UseOf(const client::LocalSecret& secret, client::JobFile* file) {
  return file->specs[secret.job].mutable_secrets(secret.secret);
}

}  // namespace

void NameLocalSecrets(const std::string& request_id, client::JobFile* file) {
  for (const client::LocalSecret& secret : file->local_secrets) {
    v1::SecretUse* use = UseOf(secret, file);
    Sha256 digest;
    digest.Add(fmt::format("{} {} {}", request_id, secret.job, use->variable()));
    use->set_name(
        fmt::format("{}-{}", client::kUnsetSecret, digest.Finish().substr(0, kNameDigits)));
  }
}

SentSecrets::~SentSecrets() {
  for (const std::string& name : made_) {
    v1::DeleteSecretRequest request;
    request.set_name(name);
    session_.client.DeleteSecret(request).status().IgnoreError();
  }
}

absl::Status SentSecrets::Send(const client::JobFile& file) {
  for (const client::LocalSecret& secret : file.local_secrets) {
    v1::SetSecretRequest request;
    request.set_name(file.specs[secret.job].secrets(secret.secret).name());
    request.set_value(secret.value);
    request.set_for_one_job(true);
    const absl::Status status = session_.client.SetSecret(request).status();
    if (status.ok()) made_.push_back(request.name());
    if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  }
  return absl::OkStatus();
}

void LeaveOutLocalSecrets(client::JobFile* file) {
  // It begins at the end, so that the places of the others stay right.
  std::for_each(file->local_secrets.rbegin(), file->local_secrets.rend(),
                [&](const client::LocalSecret& secret) {
                  auto* uses = file->specs[secret.job].mutable_secrets();
                  uses->erase(uses->begin() + secret.secret);
                });
  file->local_secrets.clear();
}

}  // namespace muster::cli
