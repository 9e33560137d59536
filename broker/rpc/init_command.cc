#include "broker/rpc/init_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/auth/ca_directory.h"
#include "broker/auth/server_identity.h"
#include "broker/rpc/machine_name.h"

namespace muster::broker {

absl::StatusOr<std::string> InitBroker(const std::string& state_dir, std::vector<std::string> names,
                                       absl::Time now) {
  for (const std::string& name :
       {MachineName(), std::string("localhost"), std::string("127.0.0.1"), std::string("::1")}) {
    const bool is_there = std::find(names.begin(), names.end(), name) != names.end();
    if (!name.empty() && !is_there) names.push_back(name);
  }
  const CaDirectory ca(state_dir + "/ca");
  if (absl::Status status = ca.Init(names, now); !status.ok()) return status;
  const absl::StatusOr<std::string> fingerprint = ServedCa(ca.server_certificate());
  if (!fingerprint.ok()) return fingerprint.status();
  return fmt::format(
      "made a CA and the broker's certificate in {0}/ca (SHA-256 of the CA: {1})\n"
      "The certificate names {2}.\n"
      "Next: start the broker with its network listener, and invite a cluster:\n"
      "  muster-broker --state-dir {0} --tls-listen 0.0.0.0:7443\n"
      "  muster clusters invite NAME\n",
      state_dir, *fingerprint, fmt::join(names, ", "));
}

}  // namespace muster::broker
