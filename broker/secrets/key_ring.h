// Holds the keys that seal secrets: libsodium's XChaCha20-Poly1305, with a nonce for each value.
//
// Keys are a text: 64 hexadecimal digits for each, a line each, the present one first. They come
// from a file of the broker's own, or from a systemd credential, which nothing here changes. A
// value; any thread.
#ifndef MUSTER_BROKER_SECRETS_KEY_RING_H_
#define MUSTER_BROKER_SECRETS_KEY_RING_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::secrets {

class KeyRing {
 public:
  KeyRing() = default;

  // `others` are the bits of the mode that must not be set. NOT_FOUND: there is no such file.
  // PERMISSION_DENIED: others may open it, or the broker may not. DATA_LOSS: it has something else
  // than keys.
  static absl::StatusOr<KeyRing> Read(const std::string& path, mode_t others);
  // OK: the file is on disk, for its owner only.
  absl::Status Write(const std::string& path) const;

  // Makes a key at random, which is the present one from now on.
  void AddKey();
  // Forgets all keys but the present one.
  void DropOldKeys();

  bool empty() const { return keys_.empty(); }
  size_t size() const { return keys_.size(); }
  // Returns the name of the present key, which tells nothing of the key.
  const std::string& present() const { return keys_.front().id; }
  bool Has(std::string_view id) const { return Find(id) != nullptr; }

  // Seals with the present key. Only a call of Open with the same `context` opens it.
  std::string Seal(std::string_view value, std::string_view context) const;
  // DATA_LOSS: it was not sealed with that key for that context, or was changed.
  absl::StatusOr<std::string> Open(std::string_view sealed, std::string_view key_id,
                                   std::string_view context) const;

 private:
  struct Key {
    std::string id;
    std::shared_ptr<const unsigned char> bytes;  // in memory that is locked and in no core dump
  };
  static Key KeyOf(const unsigned char* bytes);
  const Key* Find(std::string_view id) const;

  std::vector<Key> keys_;
};

}  // namespace muster::secrets

#endif  // MUSTER_BROKER_SECRETS_KEY_RING_H_
