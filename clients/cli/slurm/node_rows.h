// Rows of sinfo: nodes of a partition that look alike in the columns asked for. Pure, except for
// the time zone of the process.
#ifndef MUSTER_CLIENTS_CLI_SLURM_NODE_ROWS_H_
#define MUSTER_CLIENTS_CLI_SLURM_NODE_ROWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/sort_keys.h"
#include "muster/v1/cluster.pb.h"

namespace muster::cli {

// Selects nodes, and says how they are grouped. Every list that is empty takes all.
struct NodeQuery {
  std::vector<std::string> partitions, nodes;
  std::vector<std::string> states;  // as NodeState::IsAskedBy takes them
  bool is_none = false;             // a list names nothing: "-p ''"
  bool by_node = false;             // a row for each node in each of its partitions
  bool is_exact = false;            // nodes of another size have rows of their own
  bool with_reason = false;         // only nodes that are out of service
  bool only_silent = false;         // only nodes that do not answer
  bool only_answering = false;
  std::vector<SortKey> sort;  // empty: nodes by name, or partitions as they come and nodes by state
};

// The letters that NodeRows knows.
std::string NodeLetters();
// The names of --Format, and their letters.
LongNames NodeLongNames();
// The headings, in the order of the format.
std::vector<std::string> NodeHeadings(const ColumnFormat& format);
// Returns rows with Slurm's words for states, also for clusters of other kinds. A node that is in
// several partitions is in one row if no column tells them apart.
std::vector<std::vector<std::string>> NodeRows(const v1::ClusterDetails& details,
                                               const ColumnFormat& format, const NodeQuery& query);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_NODE_ROWS_H_
