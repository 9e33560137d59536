// Where the next page of a list begins. Opaque to clients; bound to the store and the filter.
#ifndef MUSTER_BROKER_STORE_PAGE_TOKEN_H_
#define MUSTER_BROKER_STORE_PAGE_TOKEN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "contract/filter.h"

namespace muster::store {

// `before`: the next page holds jobs with lower ids only.
std::string MakePageToken(std::string_view instance, const contract::Filter& filter,
                          uint64_t before);

// The largest number for an empty token, which means the first page.
// INVALID_ARGUMENT: not a token of this store, or of another filter.
absl::StatusOr<uint64_t> ReadPageToken(std::string_view instance, const contract::Filter& filter,
                                       std::string_view token);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_PAGE_TOKEN_H_
