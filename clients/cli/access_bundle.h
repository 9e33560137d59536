// All that another machine needs to reach a broker as somebody: its address, the CA by which it is
// known, and a token. `muster token create --bundle` writes it, `muster context import` reads it.
#ifndef MUSTER_CLIENTS_CLI_ACCESS_BUNDLE_H_
#define MUSTER_CLIENTS_CLI_ACCESS_BUNDLE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/contexts.h"
#include "muster/v1/identity_service.pb.h"

namespace muster::cli {

struct AccessBundle {
  std::string broker;  // tls:HOST:PORT
  std::string ca;      // PEM
  std::string token;
};

// FAILED_PRECONDITION: the broker has no network listener, or does not show its CA; the message
// says what its operator does.
absl::Status CheckHasNetwork(const v1::WhoAmIResponse& me);

std::string BundleText(const v1::NetworkAddress& network, std::string_view token);
// INVALID_ARGUMENT: it is no whole bundle. `source` is for errors.
absl::StatusOr<AccessBundle> ReadBundle(std::string_view source, std::string_view text);

// Makes or replaces a context from a bundle in the file (empty: standard input), and chooses it.
// Token and CA go into files of their own beside `contexts_path`, for their owner alone.
absl::Status ImportContext(const std::string& name, const std::string& file,
                           const std::string& contexts_path, Contexts* contexts);

// Asks the broker at that address of TLS for the CA with this fingerprint, and stores it for the
// context. Returns the file. UNAUTHENTICATED: the broker shows no such CA.
absl::StatusOr<std::string> StoreCaByFingerprint(const std::string& name, const std::string& broker,
                                                 const std::string& fingerprint,
                                                 const std::string& contexts_path);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_ACCESS_BUNDLE_H_
