// The places that the jobs of projects may use, as placement takes them. Pure values, for any
// thread.
#ifndef MUSTER_PROTO_CONTRACT_PLACE_LIMITS_H_
#define MUSTER_PROTO_CONTRACT_PLACE_LIMITS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::contract {

struct PlaceLimit {
  std::vector<std::string> clusters;  // the only ones, by name; empty: any
  std::vector<std::string> pools;     // likewise
  // Only jobs that name an account of Slurm may go to a cluster of that kind, because the account
  // that it gives to the others may be another project's.
  bool needs_account = false;

  friend bool operator==(const PlaceLimit&, const PlaceLimit&) = default;
};

// They are by the name of the project. A project that is not here may use every place.
using PlaceLimits = std::map<std::string, PlaceLimit, std::less<>>;

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PLACE_LIMITS_H_
