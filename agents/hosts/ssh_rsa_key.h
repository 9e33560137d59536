// Signs by RSA keys with SHA-2, as RFC 8332 wants it: OpenSSH 8.8 and later refuse SHA-1, and
// libssh2 1.10 knows nothing else.
#ifndef MUSTER_AGENTS_HOSTS_SSH_RSA_KEY_H_
#define MUSTER_AGENTS_HOSTS_SSH_RSA_KEY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

typedef struct evp_pkey_st EVP_PKEY;

namespace muster::hosts {

// "rsa-sha2-256" in place of "ssh-rsa" at the beginning of a public key as SSH writes it; nothing
// if it is another kind of key. A server takes the key's type for the name of the signature.
std::optional<std::string> AsSha2Key(std::string_view public_key);

class RsaKey {
 public:
  // A private key's file without passphrase, in OpenSSH's own form or in PEM; nothing if it is
  // another kind of key, or damaged.
  static std::optional<RsaKey> Parse(const std::string& text);

  // Returns the public key in SSH's form, of type "rsa-sha2-256".
  const std::string& public_key() const { return public_key_; }
  // Returns the signature with SHA-256; nothing if OpenSSL fails.
  std::optional<std::string> Sign(std::string_view data) const;

 private:
  explicit RsaKey(std::shared_ptr<EVP_PKEY> key);

  std::shared_ptr<EVP_PKEY> key_;
  std::string public_key_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_RSA_KEY_H_
