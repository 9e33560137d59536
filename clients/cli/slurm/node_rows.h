// Rows of sinfo: nodes of a partition that look alike in the columns asked for. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_NODE_ROWS_H_
#define MUSTER_CLIENTS_CLI_SLURM_NODE_ROWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/slurm/format.h"
#include "muster/v1/cluster.pb.h"

namespace muster::cli {

// Selects nodes, and says how they are grouped. Every list that is empty takes all.
struct NodeQuery {
  std::vector<std::string> partitions, nodes;
  std::vector<std::string> states;  // long words, without marks: "idle"
  bool by_node = false;             // a row for each node
  bool with_reason = false;         // only nodes that have one
};

// The letters that NodeRows knows.
std::string NodeLetters();
// The headings, in the order of the format.
std::vector<std::string> NodeHeadings(const ColumnFormat& format);
// In Slurm's words for states, also of clusters of other kinds.
std::vector<std::vector<std::string>> NodeRows(v1::ClusterDetails details,
                                               const ColumnFormat& format, const NodeQuery& query);

// "idle" of "IDLE*", "alloc" and "allocated": the long word without marks, in lower case.
std::string NodeState(std::string_view state);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_NODE_ROWS_H_
