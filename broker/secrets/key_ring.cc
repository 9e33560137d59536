#include "broker/secrets/key_ring.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "broker/secrets/wipe.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"

namespace muster::secrets {
namespace {

constexpr size_t kKeyBytes = crypto_aead_xchacha20poly1305_ietf_KEYBYTES;
constexpr size_t kNonceBytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr size_t kDigits = 2 * kKeyBytes;
// A file has at most this many keys: two while one takes the place of another, and some that were
// put aside by hand.
constexpr size_t kMaxKeys = 16;
constexpr size_t kMaxFileBytes = kMaxKeys * (kDigits + 2);
constexpr size_t kIdBytes = crypto_generichash_BYTES_MIN;

// A program that cannot have libsodium must not seal by something else.
void Begin() {
  if (sodium_init() < 0) std::abort();
}

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::shared_ptr<unsigned char> LockedBytes() {
  auto* const bytes = static_cast<unsigned char*>(sodium_malloc(kKeyBytes));
  if (bytes == nullptr) std::abort();
  return {bytes, sodium_free};
}

std::string Hex(const unsigned char* bytes, size_t size) {
  std::string text(2 * size + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, size);
  text.pop_back();
  return text;
}

absl::Status NoKeys(const std::string& path) {
  return absl::DataLossError(
      ToAbsl(fmt::format("{} does not have 1 to {} keys of {} hexadecimal digits, a line each; put "
                         "back a backup of it",
                         path, kMaxKeys, kDigits)));
}

}  // namespace

void Wipe(std::string* text) {
  sodium_memzero(text->data(), text->size());
  text->clear();
}

KeyRing::Key KeyRing::KeyOf(const unsigned char* bytes) {
  constexpr std::string_view kPurpose = "muster secrets: the name of a key";
  const std::shared_ptr<unsigned char> kept = LockedBytes();
  std::memcpy(kept.get(), bytes, kKeyBytes);
  unsigned char digest[kIdBytes];
  crypto_generichash(digest, sizeof digest, Bytes(kPurpose), kPurpose.size(), bytes, kKeyBytes);
  return {Hex(digest, sizeof digest), kept};
}

absl::StatusOr<KeyRing> KeyRing::Read(const std::string& path, mode_t others) {
  Begin();
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & others) != 0) {
    return absl::PermissionDeniedError(
        ToAbsl(fmt::format("others than its owner may open {}; chmod 600 it, and rotate the key if "
                           "somebody may have read it",
                           path)));
  }
  absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status();
  KeyRing ring;
  const std::shared_ptr<unsigned char> bytes = LockedBytes();
  bool is_good = true;
  for (size_t at = 0; at < text->size() && is_good;) {
    const size_t end = std::min(text->find('\n', at), text->size());
    size_t length = 0;
    is_good = end - at == kDigits && sodium_hex2bin(bytes.get(), kKeyBytes, text->data() + at,
                                                    kDigits, nullptr, &length, nullptr) == 0;
    if (is_good) ring.keys_.push_back(KeyOf(bytes.get()));
    at = end + 1;
  }
  Wipe(&*text);
  if (!is_good || ring.empty()) return NoKeys(path);
  return ring;
}

absl::Status KeyRing::Write(const std::string& path) const {
  std::string text;
  text.reserve(kMaxFileBytes);  // no copy stays behind
  for (const Key& key : keys_) {
    std::string digits = Hex(key.bytes.get(), kKeyBytes);
    text += digits + "\n";
    Wipe(&digits);
  }
  absl::Status status = WriteFileWhole(path, text, 0600);
  Wipe(&text);
  return status;
}

void KeyRing::AddKey() {
  Begin();
  const std::shared_ptr<unsigned char> bytes = LockedBytes();
  crypto_aead_xchacha20poly1305_ietf_keygen(bytes.get());
  keys_.insert(keys_.begin(), KeyOf(bytes.get()));
}

void KeyRing::DropOldKeys() { keys_.resize(std::min<size_t>(keys_.size(), 1)); }

const KeyRing::Key* KeyRing::Find(std::string_view id) const {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) { return key.id == id; });
  return found == keys_.end() ? nullptr : &*found;
}

std::string KeyRing::Seal(std::string_view value, std::string_view context) const {
  std::string sealed(kNonceBytes + value.size() + kTagBytes, '\0');
  randombytes_buf(sealed.data(), kNonceBytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(Bytes(sealed) + kNonceBytes, nullptr, Bytes(value),
                                             value.size(), Bytes(context), context.size(), nullptr,
                                             Bytes(sealed), keys_.front().bytes.get());
  return sealed;
}

absl::StatusOr<std::string> KeyRing::Open(std::string_view sealed, std::string_view key_id,
                                          std::string_view context) const {
  const Key* const key = Find(key_id);
  if (key == nullptr || sealed.size() < kNonceBytes + kTagBytes)
    return absl::DataLossError("it was sealed with another key");
  std::string value(sealed.size() - kNonceBytes - kTagBytes, '\0');
  const int code = crypto_aead_xchacha20poly1305_ietf_decrypt(
      Bytes(value), nullptr, nullptr, Bytes(sealed) + kNonceBytes, sealed.size() - kNonceBytes,
      Bytes(context), context.size(), Bytes(sealed), key->bytes.get());
  if (code == 0) return value;
  return absl::DataLossError("it was changed on the disk, or put in the place of another one");
}

}  // namespace muster::secrets
