#include "clients/cpp/login/kept_login.h"

#include <fmt/format.h>

#include "clients/cpp/login/token_endpoint.h"
#include "contract/text.h"

namespace muster::client {

absl::StatusOr<std::shared_ptr<KeptLogin>> KeptLogin::Open(const std::string& path,
                                                           const std::string& broker,
                                                           oidc::Exchanger exchange,
                                                           std::function<absl::Time()> now) {
  absl::StatusOr<Login> login = ReadLogin(path);
  if (!login.ok()) return login.status();
  if (login->broker != broker) {
    return absl::FailedPreconditionError(
        ToAbsl(fmt::format("the login is for the broker {}, and the context names {} now; muster "
                           "login",
                           login->broker, broker)));
  }
  return std::shared_ptr<KeptLogin>(
      new KeptLogin(path, *std::move(login), std::move(exchange), std::move(now)));
}

std::string KeptLogin::Token() {
  const MutexLock lock(mutex_);
  // If it cannot be renewed, the broker refuses it, and Renew says why.
  if (IsEnding(login_)) RenewLocked().IgnoreError();
  return login_.id_token;
}

absl::Status KeptLogin::Renew(const std::string& refused) {
  const MutexLock lock(mutex_);
  if (login_.id_token != refused) return absl::OkStatus();
  return RenewLocked();
}

absl::Status KeptLogin::RenewLocked() {
  const absl::StatusOr<LoginLock> file_lock = LoginLock::Take(path_);
  if (!file_lock.ok()) return file_lock.status();
  absl::StatusOr<Login> kept = ReadLogin(path_);
  if (absl::IsNotFound(kept.status()))
    return absl::UnauthenticatedError("somebody has logged out here; muster login");
  if (!kept.ok()) return kept.status();
  const bool is_renewed = kept->id_token != login_.id_token && !IsEnding(*kept);
  if (!is_renewed) {
    if (absl::Status status = Refresh(exchange_, &*kept); !status.ok()) return status;
    // A refresh token may be good for one use: what was got is kept, or the login is lost.
    if (absl::Status status = WriteLogin(path_, *kept); !status.ok()) return status;
  }
  login_ = *std::move(kept);
  return absl::OkStatus();
}

}  // namespace muster::client
