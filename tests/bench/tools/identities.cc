#include <fmt/format.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "agents/core/identity.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"
#include "pki/certificates.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

std::string IdentityDirectory(const Load& load, int agent) {
  return fmt::format("{}/{}", load.dir, agent);
}

absl::Status MakeIdentities(const Load& load) {
  const absl::StatusOr<std::string> ca = ReadFile(load.ca_file, pki::kMaxPemBytes);
  if (!ca.ok()) return ca.status();
  const absl::Time now = absl::Now();
  const pki::Validity validity{now - absl::Hours(1), now + absl::Hours(24)};
  const pki::Identity signer = pki::MakeCa("bench", validity);
  constexpr mode_t kForAll = 0644;
  absl::Status status = WriteFileWhole(load.dir + "/client-ca.pem", signer.certificate, kForAll);
  for (int i = 0; i < load.agents && status.ok(); ++i) {
    const std::string key = pki::MakeKey();
    const absl::StatusOr<std::string> request = pki::MakeRequest(key);
    if (!request.ok()) return request.status();
    const absl::StatusOr<std::string> certificate =
        pki::SignRequest(signer, *request, fmt::format("idle-{}", i), validity);
    if (!certificate.ok()) return certificate.status();
    status = agents::WriteIdentity(IdentityDirectory(load, i), {{key, *certificate}, *ca});
  }
  if (status.ok()) fmt::print("{{\"identities\": {}}}\n", load.agents);
  return status;
}

}  // namespace muster::bench
