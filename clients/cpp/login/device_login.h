// Logs a person in by the device flow (RFC 8628): the person opens a page in any browser, on any
// machine, and this program asks until they are done.
#ifndef MUSTER_CLIENTS_CPP_LOGIN_DEVICE_LOGIN_H_
#define MUSTER_CLIENTS_CPP_LOGIN_DEVICE_LOGIN_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/login/login_file.h"
#include "muster/v1/identity_service.pb.h"
#include "oidc/discovery.h"

namespace muster::client {

// Texts of the provider, of any characters.
struct DevicePrompt {
  std::string url;
  std::string code;
  std::string whole_url;  // with the code in it; may be empty
  absl::Duration lifetime;
};

struct DeviceLoginOptions {
  oidc::Exchanger exchange = oidc::Exchange;
  std::function<void(absl::Duration)> sleep;      // required
  std::function<absl::Time()> now;                // required
  std::function<void(const DevicePrompt&)> show;  // required; called once
};

// Waits until the person is done. The login has no broker yet. FAILED_PRECONDITION: the broker has
// no provider, or the provider has no device flow or is not set up for it. PERMISSION_DENIED: the
// person, or the provider, said no. DEADLINE_EXCEEDED: nobody used the code in time. UNAVAILABLE:
// the provider does not answer.
absl::StatusOr<Login> LogInByDevice(const v1::GetLoginInfoResponse& info,
                                    const DeviceLoginOptions& options);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOGIN_DEVICE_LOGIN_H_
