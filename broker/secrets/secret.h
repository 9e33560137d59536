// A secret as the broker keeps it, without its value.
#ifndef MUSTER_BROKER_SECRETS_SECRET_H_
#define MUSTER_BROKER_SECRETS_SECRET_H_

#include <compare>
#include <cstdint>
#include <string>

namespace muster::secrets {

// The numbers are in the file of the secrets and never change.
enum class OwnerKind : uint8_t { kUser = 1, kProject = 2 };

struct Id {
  OwnerKind kind = OwnerKind::kUser;
  std::string owner;
  std::string name;

  friend auto operator<=>(const Id&, const Id&) = default;
};

struct Record {
  Id id;
  uint32_t size_bytes = 0;
  int64_t created_micros = 0;
  int64_t updated_micros = 0;
  bool for_one_job = false;
  uint64_t job = 0;  // the one job, once it is known
};

}  // namespace muster::secrets

#endif  // MUSTER_BROKER_SECRETS_SECRET_H_
