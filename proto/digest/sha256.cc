#include "digest/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>

namespace muster {
namespace {

// Fails only for lack of memory.
void Check(int result) {
  if (result != 1) std::abort();
}

void Begin(EVP_MD_CTX* context) {
  // Fetched once: a fetch for each digest costs more than that of a small file.
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Check(EVP_DigestInit_ex2(context, sha256, nullptr));
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { Begin(context_.get()); }

void Sha256::Add(std::string_view bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::FinishBytes() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Check(EVP_DigestFinal_ex(context_.get(), digest, &size));
  Begin(context_.get());
  return std::string(reinterpret_cast<const char*>(digest), size);
}

std::string Sha256::Finish() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : FinishBytes()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

std::string Sha256Of(std::string_view bytes) {
  Sha256 digest;
  digest.Add(bytes);
  return digest.Finish();
}

}  // namespace muster
