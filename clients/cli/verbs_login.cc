// Verbs about a login at the broker's identity provider: login, logout.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "clients/cli/config.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/report.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/login/device_login.h"
#include "clients/cpp/login/kept_login.h"
#include "clients/cpp/login/login_file.h"
#include "clients/cpp/login/token_endpoint.h"
#include "contract/text.h"
#include "contract/units.h"
#include "oidc/https.h"

namespace muster::cli {
namespace {

// The login that a call of these verbs is about is kept with the context, so that no token goes to
// a broker that something else names.
int NoContext(Session& session) {
  session.terminal.Err(
      "muster: a login is kept with a context, and the broker comes from elsewhere; muster context "
      "set NAME --broker ADDRESS and muster context use NAME make one, without --broker and "
      "MUSTER_BROKER\n");
  return kUsage;
}

absl::StatusOr<client::Login> LogIn(Session& session, const v1::GetLoginInfoResponse& info) {
  client::DeviceLoginOptions options;
  options.sleep = absl::SleepFor;
  options.now = absl::Now;
  options.show = [&session](const client::DevicePrompt& prompt) {
    session.terminal.Err(fmt::format("Open {} in any browser and enter the code {}\n",
                                     Harmless(prompt.url), Harmless(prompt.code)));
    if (!prompt.whole_url.empty()) {
      session.terminal.Err(fmt::format("or open {}\n", Harmless(prompt.whole_url)));
    }
    session.terminal.Note(fmt::format("waiting for you, {} at most; Ctrl-C to stop",
                                      contract::FormatDuration(prompt.lifetime)));
  };
  return client::LogInByDevice(info, options);
}

absl::Status KeepLogin(const std::string& path, const client::Login& login) {
  const absl::StatusOr<client::LoginLock> lock = client::LoginLock::Take(path);
  if (!lock.ok()) return lock.status();
  return client::WriteLogin(path, login);
}

}  // namespace

int Login(Session& session, const Config& config) {
  if (config.login_file.empty()) return NoContext(session);
  const absl::StatusOr<v1::GetLoginInfoResponse> info = session.client.GetLoginInfo({});
  if (!info.ok()) return Fail(session, info.status());
  absl::StatusOr<client::Login> login = LogIn(session, *info);
  if (!login.ok()) return Fail(session, login.status());
  login->broker = config.broker;
  if (absl::Status status = KeepLogin(config.login_file, *login); !status.ok())
    return Fail(session, status);
  if (!config.token.empty()) {
    session.terminal.Note(
        "logged in, but a token (--token-file, MUSTER_TOKEN, MUSTER_TOKEN_FILE or that of the "
        "context) goes before the login");
    return kOk;
  }
  auto kept = client::KeptLogin::Open(config.login_file, config.broker);
  if (!kept.ok()) return Fail(session, kept.status());
  client::ClientOptions options;
  options.address = config.broker;
  options.address_origin = config.broker_origin;
  options.credential = *std::move(kept);
  const absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Create(options);
  if (!client.ok()) return Fail(session, client.status());
  Session logged_in{session.call,        session.format,    **client,
                    session.terminal,    session.interrupt, session.is_local,
                    session.leave_behind};
  return WhoAmI(logged_in);
}

int Logout(Session& session, const Config& config) {
  if (config.login_file.empty()) return NoContext(session);
  const absl::StatusOr<client::LoginLock> lock = client::LoginLock::Take(config.login_file);
  if (!lock.ok()) return Fail(session, lock.status());
  const absl::StatusOr<client::Login> login = client::ReadLogin(config.login_file);
  if (absl::IsNotFound(login.status())) {
    session.terminal.Note("you were not logged in");
    return kOk;
  }
  const bool is_told = login.ok() && client::Revoke(oidc::Exchange, *login);
  if (unlink(config.login_file.c_str()) != 0) {
    return Fail(session,
                absl::UnavailableError(ToAbsl(fmt::format("cannot remove {}", config.login_file))));
  }
  session.terminal.Note(is_told ? "logged out"
                                : "logged out here; the identity provider was not told, so that a "
                                  "copy of the login stays good there until it expires");
  return kOk;
}

}  // namespace muster::cli
