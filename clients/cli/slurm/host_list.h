// Lists of nodes as Slurm writes them.
#ifndef MUSTER_CLIENTS_CLI_SLURM_HOST_LIST_H_
#define MUSTER_CLIENTS_CLI_SLURM_HOST_LIST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// "n[1-3,7],login" of n1, n2, n3, n7 and login: names that differ in the number at their end go
// together. Sorted; leading zeros are kept.
std::string HostList(const std::vector<std::string>& names);

// The names that such a list stands for. Nothing: it cannot be read, or has more than 65536 names.
std::optional<std::vector<std::string>> HostsOf(std::string_view list);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_HOST_LIST_H_
