// muster sinfo: partitions and nodes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/known_clusters.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/node_rows.h"
#include "clients/cli/slurm/node_state.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/slurm/repeat.h"
#include "clients/cli/slurm/sort_keys.h"
#include "clients/cli/slurm/verbs.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using client::slurm::Settings;
using enum Option::Argument;

constexpr std::string_view kSinfoFormat = "%#P %.5a %.10l %.6D %.6t %N";
constexpr std::string_view kSinfoLongFormat = "%#P %.5a %.10l %.10s %.6D %.11T %N";
constexpr std::string_view kNodeFormat = "%#9N  %.5D %.#9P %6t";
constexpr std::string_view kLongNodeFormat = "%#9N  %.5D %.#9P %.11T %4c %.8m %f %E";
constexpr std::string_view kSummary = "%#P %.5a %.10l %.16F %N";
constexpr std::string_view kReasons = "%20E %9u %19H %N";
constexpr std::string_view kLongReasons = "%20E %12u %19H %6t %N";

constexpr std::array kSinfoOptions = {
    Option{"all", 'a', kNone, "SINFO_ALL"},
    Option{"clusters", 'M', kRequired, "SLURM_CLUSTERS"},
    Option{"dead", 'd', kNone},
    Option{"exact", 'e', kNone},
    Option{"federation", 0, kNone, "SINFO_FEDERATION"},
    Option{"format", 'o', kRequired, "SINFO_FORMAT"},
    Option{"Format", 'O'},
    Option{"help", 0, kNone},
    Option{"hide", 0, kNone},
    Option{"iterate", 'i'},
    Option{"json", 0, kNone},
    Option{"list-reasons", 'R', kNone},
    Option{"local", 0, kNone, "SINFO_LOCAL"},
    Option{"long", 'l', kNone},
    Option{"Node", 'N', kNone},
    Option{"nodes", 'n'},
    Option{"noconvert", 0, kNone},
    Option{"noheader", 'h', kNone},
    Option{"partition", 'p', kRequired, "SINFO_PARTITION"},
    Option{"reservation", 'T', kNone},
    Option{"responding", 'r', kNone},
    Option{"sort", 'S', kRequired, "SINFO_SORT"},
    Option{"states", 't'},
    Option{"summarize", 's', kNone},
    Option{"usage", 0, kNone},
    Option{"verbose", 'v', kNone},
    Option{"version", 'V', kNone},
    Option{"yaml", 0, kNone},
};
constexpr std::pair<std::string_view, std::string_view> kSinfoRefused[] = {
    {"hide", "the partitions that the cluster's agent sees are shown; leave it out"},
    {"json", "use: muster clusters NAME -o json"},
    {"reservation", "ask sinfo itself on the cluster"},
    {"yaml", "use: muster clusters NAME -o yaml"},
};

struct AskedSinfo {
  NodeQuery query;
  std::vector<std::string> clusters;  // empty: all of Slurm, or of any kind where none is
  ColumnFormat format;
  std::vector<std::string> unknown;  // columns that there are not
  bool with_heading = true;
  bool with_name = false;  // of each cluster, also of a single one
  bool with_date = false;
  absl::Duration pause = absl::ZeroDuration();  // between two looks; zero: one look
};

// The columns of --Format=All.
std::string AllNodeColumns() {
  std::string names;
  for (const auto& [name, letter] : NodeLongNames())
    names += (names.empty() ? "" : ",") + std::string(name);
  return names;
}

// The last one typed counts, then the options that bring columns of their own, then the variable.
ColumnFormat ReadSinfoFormat(const Settings& given, std::vector<std::string>* unknown) {
  const auto parse = [&](std::string_view text) {
    return ParseColumnFormat(text, NodeLetters(), "", unknown);
  };
  for (auto setting = given.settings.rbegin(); setting != given.settings.rend(); ++setting) {
    if (!IsTyped(*setting)) continue;
    if (setting->option->name == "format") return parse(setting->value);
    if (setting->option->name == "Format")
      return ParseLongFormat(
          absl::EqualsIgnoreCase(setting->value, "all") ? AllNodeColumns() : setting->value,
          NodeLongNames(), unknown);
  }
  const bool is_long = given.Find("long") != nullptr;
  if (given.Find("list-reasons") != nullptr) return parse(is_long ? kLongReasons : kReasons);
  if (given.Find("summarize") != nullptr) return parse(kSummary);
  if (given.Find("Node") != nullptr) return parse(is_long ? kLongNodeFormat : kNodeFormat);
  if (const Setting* own = given.Find("format"); own != nullptr) return parse(own->value);
  return parse(is_long ? kSinfoLongFormat : kSinfoFormat);
}

absl::StatusOr<AskedSinfo> ReadSinfo(const std::vector<std::string>& words) {
  const auto read = ReadGiven(kSinfoOptions, words, kSinfoRefused);
  if (!read.ok()) return read.status();
  const Settings& given = read->options;
  if (!read->operands.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("unrecognized argument {}", contract::Quoted(read->operands.front())));
  }
  AskedSinfo asked;
  AddListUnlessAll(given, "clusters", &asked.clusters);
  asked.with_name = given.Find("clusters") != nullptr;
  AddListUnlessAll(given, "partition", &asked.query.partitions);
  AddListUnlessAll(given, "states", &asked.query.states);
  for (std::string_view name : {"partition", "nodes", "states"}) {
    const Setting* list = given.Find(name);
    const bool is_empty =
        list != nullptr && list->value.find_first_not_of(',') == std::string::npos;
    asked.query.is_none = asked.query.is_none || is_empty;
  }
  for (const std::string& state : asked.query.states) {
    const absl::Status known = NodeState().IsAskedBy(state).status();
    if (!known.ok()) return known;
  }
  const Setting* named = given.Find("nodes");
  if (named != nullptr && named->value != "all") {
    const absl::Status status = AddNodes(given, "nodes", &asked.query.nodes);
    if (!status.ok()) return status;
  }
  asked.query.by_node = given.Find("Node") != nullptr;
  asked.query.with_reason = given.Find("list-reasons") != nullptr;
  asked.query.is_exact = given.Find("exact") != nullptr;
  asked.query.only_silent = given.Find("dead") != nullptr;
  asked.query.only_answering = given.Find("responding") != nullptr;
  asked.format = ReadSinfoFormat(given, &asked.unknown);
  if (const Setting* sort = given.Find("sort"); sort != nullptr) {
    auto keys = ReadSortKeys(sort->value, NodeLetters());
    if (!keys.ok()) return keys.status();
    asked.query.sort = *std::move(keys);
  }
  const absl::StatusOr<absl::Duration> pause = ReadPause(given);
  if (!pause.ok()) return pause.status();
  asked.pause = *pause;
  asked.with_heading = given.Find("noheader") == nullptr;
  asked.with_date = given.Find("long") != nullptr || given.Find("iterate") != nullptr;
  return asked;
}

// Says on standard error why a cluster is left out.
int ShowCluster(Session& session, const AskedSinfo& asked, const std::string& name,
                bool with_name) {
  v1::DescribeClusterRequest request;
  request.set_name(name);
  request.set_without_jobs(true);
  const auto response = session.client.DescribeCluster(request);
  if (!response.ok()) {
    session.terminal.Err(fmt::format("sinfo: error: cluster {}: {}\n", Harmless(name),
                                     OneLine(ToStd(response.status().message()))));
    return CodeFor(response.status());
  }
  // Columns have the same widths without a heading.
  std::vector<std::vector<std::string>> rows = {NodeHeadings(asked.format)};
  for (auto& row : NodeRows(response->details(), asked.format, asked.query)) {
    rows.push_back(std::move(row));
  }
  const std::string heading = with_name ? fmt::format("CLUSTER: {}\n", Harmless(name)) : "";
  std::string lines = asked.format.Lines(rows, true);
  if (!asked.with_heading) lines.erase(0, lines.find('\n') + 1);
  session.terminal.Out(heading + lines);
  return kOk;
}

bool IsSlurm(const std::pair<const std::string, v1::Cluster>& entry) {
  return entry.second.kind() == v1::CLUSTER_KIND_SLURM;
}

int ShowClusters(Session& session, const AskedSinfo& asked) {
  std::vector<std::string> names = asked.clusters;
  if (names.empty()) {
    const auto clusters = AllClusters(session.client);
    if (!clusters.ok()) return Fail(session, clusters.status());
    const bool has_slurm = std::any_of(clusters->begin(), clusters->end(), IsSlurm);
    for (const auto& entry : *clusters) {
      if (!has_slurm || IsSlurm(entry)) names.push_back(entry.first);
    }
  }
  if (asked.with_date && asked.with_heading) session.terminal.Out(DateLine(absl::Now()));
  int code = kOk;
  for (const std::string& name : names) {
    const bool with_name = names.size() > 1 || asked.with_name;
    const int one = ShowCluster(session, asked, name, with_name && asked.with_heading);
    if (code == kOk) code = one;
  }
  return code;
}

}  // namespace

int Sinfo(Session& session) {
  const std::string about = AboutText("sinfo", kSinfoOptions, kSinfoRefused, session.call.words);
  if (!about.empty()) {
    session.terminal.Out(about);
    return kOk;
  }
  const absl::StatusOr<AskedSinfo> asked = ReadSinfo(session.call.words);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  for (const std::string& column : asked->unknown) {
    session.terminal.Err(
        fmt::format("sinfo: error: Invalid node format specification: {}\n", Harmless(column)));
  }
  return Repeat(session, asked->pause, [&] { return ShowClusters(session, *asked); });
}

}  // namespace muster::cli
