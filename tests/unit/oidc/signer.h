// Makes keys and tokens as a provider does, and tokens as a forger does.
#ifndef MUSTER_TESTS_UNIT_OIDC_SIGNER_H_
#define MUSTER_TESTS_UNIT_OIDC_SIGNER_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "broker/auth/oidc/key_set.h"
#include "pki/openssl.h"

namespace muster::oidc {

class Signer {
 public:
  explicit Signer(Algorithm algorithm, std::string id = "k1", int rsa_bits = 2048);

  // Returns the public key.
  nlohmann::json Jwk() const;
  // Returns the signature of the text, in the form of a JWS.
  std::string Sign(std::string_view text) const;
  // Makes a token with this header and these claims.
  std::string Token(const std::string& header, const std::string& claims) const;
  // Makes one with the usual header.
  std::string Token(const nlohmann::json& claims) const;
  std::string Header() const;

 private:
  const Algorithm algorithm_;
  const std::string id_;
  const pki::Key key_;
};

// Returns the text of a key set.
std::string SetOf(std::initializer_list<nlohmann::json> keys);

}  // namespace muster::oidc

#endif  // MUSTER_TESTS_UNIT_OIDC_SIGNER_H_
