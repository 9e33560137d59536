// Reads STATE/ca: the CA that muster-broker init makes, and the broker's own key and certificate.
//
//   ca.pem          the CA's certificate         ca-key.pem      its key
//   server.pem      the broker's, and the CA's   server-key.pem  its key
#ifndef MUSTER_BROKER_AUTH_CA_DIRECTORY_H_
#define MUSTER_BROKER_AUTH_CA_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pki/certificates.h"

namespace muster::broker {

// The CA's certificate outlives a broker's hardware, because no agent gets another one by
// itself.
inline constexpr absl::Duration kCaLife = absl::Hours(24 * 365 * 10);
// The broker's certificate is made anew by the broker when a third of this is left.
inline constexpr absl::Duration kServerLife = absl::Hours(24 * 90);

class CaDirectory {
 public:
  explicit CaDirectory(std::string path) : path_(std::move(path)) {}

  std::string certificate() const { return path_ + "/ca.pem"; }
  std::string key() const { return path_ + "/ca-key.pem"; }
  std::string server_certificate() const { return path_ + "/server.pem"; }
  std::string server_key() const { return path_ + "/server-key.pem"; }

  // Returns whether there is a CA, or a part of one.
  bool Exists() const;
  // Makes all four. ALREADY_EXISTS: there is a CA; its loss would shut out every agent.
  absl::Status Init(const std::vector<std::string>& names, absl::Time now) const;
  // Returns the CA. An error names the file that cannot be read, and what to do.
  absl::StatusOr<pki::Identity> Load() const;
  // Makes the broker's certificate anew, with the same key and names, once a third of its life is
  // left. Returns whether it did.
  absl::StatusOr<bool> RenewServer(absl::Time now) const;

 private:
  const std::string path_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_AUTH_CA_DIRECTORY_H_
