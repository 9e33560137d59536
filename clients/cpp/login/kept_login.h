// A login from its file, renewed before it ends. Several processes may use one file at a time.
#ifndef MUSTER_CLIENTS_CPP_LOGIN_KEPT_LOGIN_H_
#define MUSTER_CLIENTS_CPP_LOGIN_KEPT_LOGIN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/credential.h"
#include "clients/cpp/login/login_file.h"
#include "oidc/discovery.h"
#include "sync/mutex.h"

namespace muster::client {

class KeptLogin final : public Credential {
 public:
  // A token is renewed when so much of its life is left: enough for a call that waits a while.
  static constexpr absl::Duration kRenewBefore = absl::Seconds(30);

  // Errors as of ReadLogin. FAILED_PRECONDITION: the login is for another broker.
  static absl::StatusOr<std::shared_ptr<KeptLogin>> Open(
      const std::string& path, const std::string& broker, oidc::Exchanger exchange = oidc::Exchange,
      std::function<absl::Time()> now = absl::Now);

  std::string Token() override;
  absl::Status Renew(const std::string& refused) override;

 private:
  KeptLogin(std::string path, Login login, oidc::Exchanger exchange,
            std::function<absl::Time()> now)
      : path_(std::move(path)),
        exchange_(std::move(exchange)),
        now_(std::move(now)),
        login_(std::move(login)) {}

  bool IsEnding(const Login& login) const {
    return EndOfToken(login.id_token) < now_() + kRenewBefore;
  }
  absl::Status RenewLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const oidc::Exchanger exchange_;
  const std::function<absl::Time()> now_;
  Mutex mutex_;  // held while the network is waited for: whoever needs the token waits, too
  Login login_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOGIN_KEPT_LOGIN_H_
