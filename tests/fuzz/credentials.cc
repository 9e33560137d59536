// Tokens, join tokens, and certificates as PEM and as what is in it.
#include <string>

#include "absl/strings/escaping.h"
#include "digest/token_text.h"
#include "pki/certificates.h"
#include "pki/join_token.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = muster::fuzz::TextOf(data, size);
  static_cast<void>(muster::IsTokenText(text));
  static_cast<void>(muster::pki::FingerprintIn(text));
  const std::string base64 = absl::Base64Escape({text.data(), text.size()});
  for (const std::string& pem : {std::string(text), "-----BEGIN CERTIFICATE-----\n" + base64 +
                                                        "\n-----END CERTIFICATE-----\n"}) {
    static_cast<void>(muster::pki::ReadCertificate(pem));
    static_cast<void>(muster::pki::ServerNames(pem));
  }
  return 0;
}
