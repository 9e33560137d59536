// Says where the next page of a list begins. Opaque to clients; bound to the store, the filter and
// the order.
#ifndef MUSTER_BROKER_STORE_PAGE_TOKEN_H_
#define MUSTER_BROKER_STORE_PAGE_TOKEN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "contract/filter.h"
#include "contract/job_order.h"

namespace muster::store {

// `last` is the place after which the next page begins.
std::string MakePageToken(std::string_view instance, const contract::Filter& filter,
                          const contract::JobOrder& order, const contract::JobPlace& last);

// Returns nothing for an empty token, which means the first page. INVALID_ARGUMENT: the token is
// not of this store, or belongs to another filter or order.
absl::StatusOr<std::optional<contract::JobPlace>> ReadPageToken(std::string_view instance,
                                                                const contract::Filter& filter,
                                                                const contract::JobOrder& order,
                                                                std::string_view token);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_PAGE_TOKEN_H_
