// Decides which keys a host may show: the lines of a known_hosts file, and keys pinned in the
// settings.
//
// Hosts are never trusted on first use. Immutable once made.
#ifndef MUSTER_AGENTS_HOSTS_HOST_KEYS_H_
#define MUSTER_AGENTS_HOSTS_HOST_KEYS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/ssh_config.h"

namespace muster::hosts {

// Returns "SHA256:..." of a public key in SSH's binary form, as ssh-keygen -l prints it.
std::string Fingerprint(std::string_view key);
// Returns the type that such a key names itself ("ssh-ed25519"); empty if it is none.
std::string KeyType(std::string_view key);

class HostKeys {
 public:
  // Reads config.known_hosts_file (at most 16 MiB) and config.host_keys. FAILED_PRECONDITION: the
  // file cannot be read; INVALID_ARGUMENT: a pinned key is none. Lines of the file that cannot be
  // read are passed over, as ssh does; certificates' authorities are not used.
  static absl::StatusOr<HostKeys> Load(const SshConfig& config);
  // Does the same from texts.
  static absl::StatusOr<HostKeys> Parse(std::string_view known_hosts, std::string_view file,
                                        const std::vector<std::string>& pinned);

  // Returns the types of the keys known for the host. The host is asked to show a key of one of
  // these types, since it may have others as well.
  std::vector<std::string> TypesFor(const LoginHost& host) const;
  // Returns whether the host may show this key. FAILED_PRECONDITION: its key is not known, is
  // another one than known, or is revoked; the message has the fingerprints and the remedy.
  absl::Status Check(const LoginHost& host, std::string_view key) const;

 private:
  struct Entry {
    std::string patterns;  // the first word of the line; empty: any host
    bool is_revoked = false;
    std::string key;          // empty: only the fingerprint is known
    std::string fingerprint;  // "SHA256:..."
    std::string where;        // "FILE:LINE", or the setting
  };

  static bool Matches(const Entry& entry, const LoginHost& host);
  void AddLine(std::string_view line, std::string where);
  absl::Status AddPinned(std::string_view text);

  std::string file_;
  std::vector<Entry> entries_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_HOST_KEYS_H_
