// The broker's filter language, as ListJobs takes it.
#ifndef MUSTER_CLIENTS_CLI_FILTER_H_
#define MUSTER_CLIENTS_CLI_FILTER_H_

#include <string>
#include <string_view>

#include "clients/cli/invocation.h"

namespace muster::cli {

// A value as a word of a filter: any text, in quotes.
std::string FilterText(std::string_view text);

// The conditions of list, ps and count.
std::string FilterOf(const Invocation& call);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_FILTER_H_
